"""The processing of one message (a turn): its context, the prompt, the model calls, the tools, and storage."""
