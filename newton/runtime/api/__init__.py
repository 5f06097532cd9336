"""The HTTP API: routes call the services of an agent and convert the results to responses."""
