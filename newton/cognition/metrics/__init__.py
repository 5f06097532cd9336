"""Quality metrics of contexts."""
