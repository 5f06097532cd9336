"""The work that is due: when, for whom, claimed once, and what came of it."""
