"""Frame selection."""
