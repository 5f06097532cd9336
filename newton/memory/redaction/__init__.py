"""Redaction of secrets: patterns of tokens, values that a label such as "password" names, numbers with check digits."""
