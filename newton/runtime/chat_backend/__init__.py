"""The backend of a chat: an agent in this process, or one in a daemon that is called over HTTP."""
