"""Client of models with the Chat Completions API, of OpenAI and compatible servers."""
