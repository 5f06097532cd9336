"""How a statement is read, so that two tellings of it can be compared. Pure."""
