"""ASGI middleware: the request log, limits on requests, and admission control."""
