"""Texts in the served languages: words, stems, sentences, names, numbers, dates and questions. Pure."""
