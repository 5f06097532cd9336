"""Checks of an installation, which `newton doctor` prints."""
