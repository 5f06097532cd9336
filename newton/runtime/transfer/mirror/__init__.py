"""The mirror of an agent: its memories as Markdown files that a person reads and edits."""
