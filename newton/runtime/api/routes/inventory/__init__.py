"""Endpoints that list and change stored data: memories, documents, entities and tokens."""
