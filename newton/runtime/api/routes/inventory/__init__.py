"""Routes that show and change what is stored: lists, documents, entities and tokens."""
