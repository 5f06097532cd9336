"""Languages of texts: detection, words for the search index, and the patterns of each language as data. Pure."""
