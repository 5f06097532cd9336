"""Background work on memories: state changes, extraction of facts, summaries, and fitting of profile weights."""
