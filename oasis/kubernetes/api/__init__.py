"""Talking to an API server: requests, errors, watches, the lease."""
