"""PostgreSQL access: embedded or external server, agent scope, named queries, migrations."""
