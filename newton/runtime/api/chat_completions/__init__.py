"""Chat completions in OpenAI's format: the request, the choice of the model, and the response."""
