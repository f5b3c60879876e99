"""The leg to the caller: ASGI data plane and its HTTP limits."""
