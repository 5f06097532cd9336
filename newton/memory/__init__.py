"""The base that all kinds of memory share: short forms, provenance, redaction, storage, recall, embedding outbox."""
