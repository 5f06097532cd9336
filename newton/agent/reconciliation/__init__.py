"""Reconciliation of new lines of conversations with what is known: a model proposes changes, code checks them."""
