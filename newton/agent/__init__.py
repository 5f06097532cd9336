"""One agent: it runs turns, offers services on its memory, and maintains that memory in the background."""
