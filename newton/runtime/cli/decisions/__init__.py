"""Commands that record, review and list decisions."""
