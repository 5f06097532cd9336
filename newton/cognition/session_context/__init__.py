"""Decision whether a session reuses, updates or rebuilds its context for an input."""
