"""Commands on sessions (conversations), their tasks and their working memory."""
