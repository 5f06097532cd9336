"""Facts: storage, attributes, deduplication and generalization."""
