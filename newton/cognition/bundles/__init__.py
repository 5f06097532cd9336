"""Storage, explanation, replay and comparison of bundles (assembled contexts, with all that explains them)."""
