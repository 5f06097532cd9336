"""The Responses API of OpenAI, translated to chat completions and back."""
