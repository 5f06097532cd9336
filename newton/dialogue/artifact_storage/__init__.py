"""Artifacts of a session: long outputs, pasted texts and files, stored whole, and their short form in a prompt."""
