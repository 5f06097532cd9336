"""Idempotency keys: a repeated request gets the stored response."""
