"""The brief of a session: its goals, deadlines, constraints, rules and open items, apart from the narrative."""
