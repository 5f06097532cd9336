"""Client of models with Anthropic's Messages API."""
