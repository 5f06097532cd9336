"""Commands on decision rules and quality metrics."""
