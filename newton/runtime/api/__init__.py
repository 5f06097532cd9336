"""HTTP API: maps requests to service calls, and results to responses."""
