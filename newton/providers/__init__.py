"""Clients of external services: embedding models, chat models and web search; and token counting."""
