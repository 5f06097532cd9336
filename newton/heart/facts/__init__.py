"""Facts: storage, attributes, comparison and generalization."""
