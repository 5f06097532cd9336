"""Calls of the chat model with structured output, and the record of the tokens used."""
