"""Endpoints for the operator of a daemon."""
