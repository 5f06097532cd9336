"""The base of every kind of memory: short forms, provenance, hygiene, storage, recall and the embedding outbox."""
