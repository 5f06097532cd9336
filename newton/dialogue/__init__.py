"""Sessions: the append-only message log, its view (what a model is shown of it), compaction, tasks and artifacts."""
