"""The brief of a session: its goals, deadlines, rules, constraints and open items, word for word."""
