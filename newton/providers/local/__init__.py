"""Transformers on the CPU that were trained further from the bundled embedding model."""
