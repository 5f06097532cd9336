"""The tools that MCP and the chat share, and the JSON models that they share with HTTP."""
