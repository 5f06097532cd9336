"""Carrying out of a person's will over memory."""
