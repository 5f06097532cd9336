"""Six weeks of one life: a story, the person who tells it by every interface, and what is checked at its end."""
