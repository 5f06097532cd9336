"""The client of MCP servers: connections, checks of their tools, and calls."""
