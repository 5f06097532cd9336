"""Reconciliation of new lines of conversations with what is known, by a call of a model that code checks."""
