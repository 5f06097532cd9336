"""ASGI middleware: request log, request limits, admission."""
