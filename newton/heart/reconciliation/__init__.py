"""Reconciliation: a model proposes how new lines change what is known, and code checks each proposal. Pure."""
