"""Answers without a model: the memories a model would have been given, word for word. Pure."""

from newton.cognition.bundle import Bundle, Considered

MOST_QUOTES = 8
# Below this cosine, and without a shared word, a memory only stands in the context because there was room.
FAINT = 0.2

# What tells something; a procedure is for whoever acts.
TELLING = frozenset({"exchange", "episode", "fact", "passage", "event"})

NOTHING = "There is nothing about this in memory yet."


def quoted(bundle: Bundle) -> str:
    """The best few memories of the context, one a line; or that there is nothing."""
    quotes = [f"- {item.text}" for item in bundle.items if _speaks_to_the_input(item)][:MOST_QUOTES]
    return "\n".join(["From memory:", *quotes]) if quotes else NOTHING


def _speaks_to_the_input(item: Considered) -> bool:
    return item.kind in TELLING and (item.features["lexical"] > 0 or item.features["cosine"] >= FAINT)
