"""Replies without a model: quotes of the memories in the context. Pure."""

from newton.cognition.assembly.assembler import TIMELY_INDEX
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.sources.signals import asks_for_whole_range
from newton.memory.question_detection import summarizes_session_starting_with
from newton.memory.time_search import DATED_KINDS

MAX_QUOTES = 8
# Memories below this cosine that share no word with the input are in the context only as filler.
MIN_COSINE = 0.2

# Procedures are left out: they are instructions, not answers.
QUOTABLE_KINDS = frozenset({"exchange", "episode", "fact", "passage", "event", "decision"})

NOTHING_FOUND = "Memory has nothing about this yet."


def quote_memories(bundle: Bundle) -> str:
    """Return the best memories of the context, one a line, or a message that nothing was found."""
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
