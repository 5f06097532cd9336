"""The working memory of a session."""
