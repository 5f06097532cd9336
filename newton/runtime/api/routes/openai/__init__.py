"""Endpoints in OpenAI's formats."""
