"""Commands on sessions, tasks and working memory."""
