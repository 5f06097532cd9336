"""The spine every kind of memory shares: forms, origin and trust, hygiene, writing, recall, the embedding outbox."""
