"""OpenAI's Responses API, translated to chat completions and back."""
