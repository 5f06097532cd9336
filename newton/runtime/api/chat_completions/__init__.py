"""Chat completions in OpenAI's format: what a client sends, which model answers, and the response."""
