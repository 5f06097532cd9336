"""The HTTP endpoints, with one router module per resource."""
