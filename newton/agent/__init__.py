"""One agent: it answers messages, offers services on its memory, and maintains that memory in the background."""
