"""Requests that programs or persons send: their features, and the model that tells the two apart."""
