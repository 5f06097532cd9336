"""Parsers of document formats: each returns sections of paragraphs with their positions."""
