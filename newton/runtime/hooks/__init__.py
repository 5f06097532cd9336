"""Hooks: commands that coding agents call at events. They start fast, because they import only the standard library."""
