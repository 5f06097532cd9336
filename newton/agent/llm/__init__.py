"""Structured calls to the chat model, and its recorded usage."""
