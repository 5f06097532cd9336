"""Entities (named people, places and things) and the relations between them."""
