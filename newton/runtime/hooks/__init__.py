"""Hooks of coding agents. A hook must answer fast, so these modules import only the standard library."""
