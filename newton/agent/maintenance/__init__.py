"""Background work on memories: lifecycle, extraction, summaries, profile fitting."""
