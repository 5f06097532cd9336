"""Services on the contents of sessions: tasks, injections, used memories and statistics."""
