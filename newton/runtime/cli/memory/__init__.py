"""Commands that store, find, change and move memories."""
