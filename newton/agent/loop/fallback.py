"""Answers without a model: the memories a model would have been given, word for word. Pure."""

from newton.cognition.assembly.assembler import TIMELY_INDEX
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.sources.signals import asks_for_whole_range
from newton.memory.question_detection import summarizes_session_starting_with
from newton.memory.time_search import DATED_KINDS

MAX_QUOTES = 8
# Below this cosine, and without a shared word, a memory only stands in the context because there was room.
MIN_COSINE = 0.2

# What tells something; a procedure is for whoever acts.
QUOTABLE_KINDS = frozenset({"exchange", "episode", "fact", "passage", "event", "decision"})

NOTHING_FOUND = "There is nothing about this in memory yet."


def quote_memories(bundle: Bundle) -> str:
    """The best few memories of the context, one a line; or that there is nothing, or nothing of the time asked for."""
    every = bundle.empty_time_ranges and asks_for_whole_range(bundle.input, bundle.assembly_input.time_ranges)
    wanted = [item for item in bundle.items if _is_relevant(item, bundle.input)]
    quotes = [f"- {item.text}" for item in wanted if not (every and item.kind in DATED_KINDS)][:MAX_QUOTES]
    head = (
        [f"Nothing is known of that time ({', '.join(bundle.empty_time_ranges)})."] if bundle.empty_time_ranges else []
    )
    if quotes:
        return "\n".join([*head, "Not of that time:" if head else "From memory:", *quotes])
    return "\n".join(head) or NOTHING_FOUND


def _is_relevant(item: ScoredCandidate, question: str) -> bool:
    found = item.scored.found
    if (
        item.kind not in QUOTABLE_KINDS
        or found.is_only_question
        or (item.kind == "episode" and summarizes_session_starting_with(found.spoken_text, question))
    ):
        return False
    of_the_time = item.scored.features[TIMELY_INDEX] > 0
    return of_the_time or item.features["lexical"] > 0 or item.features["cosine"] >= MIN_COSINE
