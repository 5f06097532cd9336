"""The tools of the MCP server and the chat, and JSON models that these share with the HTTP API."""
