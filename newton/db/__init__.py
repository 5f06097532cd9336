"""PostgreSQL: one door to the embedded or an external server, agent scope, named queries, migrations."""
