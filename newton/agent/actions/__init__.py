"""Calls of external tools, such as those of MCP servers: permissions, checks, execution and records."""
