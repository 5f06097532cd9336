"""Access to PostgreSQL: an embedded or external server, transactions of one agent, named queries, and migrations."""
