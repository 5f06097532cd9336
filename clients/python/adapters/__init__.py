"""Adapters for agent frameworks. Each module needs the extra of its name, such as newton-client[pydantic-ai]."""
