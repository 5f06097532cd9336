"""Commands that import, ingest and export memories."""
