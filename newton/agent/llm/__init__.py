"""Structured calls to the chat model, and the tokens that they used."""
