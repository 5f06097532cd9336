"""Endpoints on the tasks of sessions and on what sessions contain."""
