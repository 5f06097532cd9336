"""External providers: embedding models, chat models, token counting and web search."""
