"""Answers without a model: the memories a model would have been given, word for word. Pure."""

from newton.cognition.assemble import TIMELY
from newton.cognition.bundle import Bundle, Considered
from newton.cognition.signals import asks_for_all_of
from newton.memory.questions import began_with
from newton.memory.timely import DATED

MOST_QUOTES = 8
# Below this cosine, and without a shared word, a memory only stands in the context because there was room.
FAINT = 0.2

# What tells something; a procedure is for whoever acts.
TELLING = frozenset({"exchange", "episode", "fact", "passage", "event", "decision"})

NOTHING = "There is nothing about this in memory yet."


def quoted(bundle: Bundle) -> str:
    """The best few memories of the context, one a line; or that there is nothing, or nothing of the time asked for."""
    every = bundle.blank and asks_for_all_of(bundle.input, bundle.setting.times)
    wanted = [item for item in bundle.items if _speaks_to_the_input(item, bundle.input)]
    quotes = [f"- {item.text}" for item in wanted if not (every and item.kind in DATED)][:MOST_QUOTES]
    head = [f"Nothing is known of that time ({', '.join(bundle.blank)})."] if bundle.blank else []
    if quotes:
        return "\n".join([*head, "Not of that time:" if head else "From memory:", *quotes])
    return "\n".join(head) or NOTHING


def _speaks_to_the_input(item: Considered, asked: str) -> bool:
    found = item.scored.found
    if item.kind not in TELLING or found.only_asks or (item.kind == "episode" and began_with(found.said, asked)):
        return False
    of_the_time = item.scored.features[TIMELY] > 0
    return of_the_time or item.features["lexical"] > 0 or item.features["cosine"] >= FAINT
