"""Sessions: the append-only message log, its views and compaction, tasks and artifacts."""
