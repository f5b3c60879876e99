"""The leg to the provider: our own HTTP/1.1 client."""
