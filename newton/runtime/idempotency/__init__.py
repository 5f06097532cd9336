"""Idempotency keys: a repeated write request gets the stored response and has no second effect."""
