"""Is it well, and may we try again? Breaker, window, rests, backoff, failover. Pure."""
