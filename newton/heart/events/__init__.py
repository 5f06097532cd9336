"""Events that an agent recorded: files read and written, commands run, errors."""
