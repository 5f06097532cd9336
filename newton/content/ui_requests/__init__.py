"""Requests of programs and of persons: what they are made of, and the model that tells them apart."""
