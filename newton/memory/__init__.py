"""What all kinds of memory share: short forms, provenance, redaction, storage, recall and the embedding outbox."""
