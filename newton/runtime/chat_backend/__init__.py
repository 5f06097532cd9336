"""The backend of a chat: an agent in this process or behind a daemon."""
