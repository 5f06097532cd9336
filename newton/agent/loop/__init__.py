"""One turn: context, prompt, completion, tool calls, record."""
