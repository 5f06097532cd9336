"""ASGI middleware: request log, request limits and admission control."""
