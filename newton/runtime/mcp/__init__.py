"""MCP: the verbs of the memory for any program that speaks it, over its own pipes or over HTTP."""
