"""Notes of a context about what memory does not have, and entries about what did not fit. Pure."""

from collections.abc import Mapping, Sequence

from newton.cognition.assembly.render import TextBlock, to_bullet
from newton.cognition.assembly.sections import BriefSection, ExtraSection, TaskSection
from newton.memory.memory import TokenCounter
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.times.time_expressions import TimeRange

NOTHING_KNOWN = "Earlier conversations and notes say nothing about this."
UNCERTAIN = "Earlier conversations and notes may not answer this."
UNSEARCHED = "Not searched for this input, because it took too long or failed: {}. Memory may have more about it."

# What a context does not know of, by the source that could not be read. Sources that only help to rank have no entry.
UNSEARCHED_CONTENTS = {
    "memories": "stored memories",
    "embeddings": "memories by meaning",
    "words": "memories by words",
    "times": "memories of the requested time",
    "standing statements": "standing wishes",
    "identity and constraints": "identity and constraints",
    "session": "the state of the session",
    "tasks": "the tasks of the session",
    "entities and procedures": "entities and procedures",
    "events": "recent events",
    "session artifacts": "artifacts of the session",
    "tool results": "results of tools",
    "triggered or injected memories": "memories put into the session",
    "web search": "the web",
}


def render_nothing_known_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context for which memory has nothing relevant."""
    return _render_note(NOTHING_KNOWN, count_tokens)


def render_uncertain_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context whose memories probably lack what the input asks for."""
    return _render_note(UNCERTAIN, count_tokens)


def render_unsearched_note(missing: Mapping[str, str], count_tokens: TokenCounter) -> TextBlock | None:
    """Return the note that names what could not be searched; None if `missing` has nothing of the kind.

    To have no embedding model is a setting, and no failure.
    """
    names = [name for name in UNSEARCHED_CONTENTS if missing.get(name) not in (None, NO_EMBEDDER)]
    contents = ", ".join(UNSEARCHED_CONTENTS[name] for name in names)
    return _render_note(UNSEARCHED.format(contents), count_tokens) if names else None


def render_empty_range_note(time_ranges: Sequence[TimeRange], count_tokens: TokenCounter) -> TextBlock:
    """Return the note that memory has nothing from the requested times."""
    phrases = ", ".join(time_range.phrase for time_range in time_ranges)
    return _render_note(f"Memory has nothing from the requested time ({phrases}).", count_tokens)


def describe_omissions(extra: ExtraSection, tasks: TaskSection, brief: BriefSection) -> Mapping[str, str]:
    """Return entries for `missing` that count what does not fit: lines of the caller, tasks and items of the brief."""
    lines, count = extra.omitted_count, tasks.omitted_count
    missing = {"additional": f"no room for the last {lines} lines of the additional text"} if lines else {}
    missing |= {"tasks": f"no room for {count} tasks"} if count else {}
    return missing | ({"brief": f"no room for {brief.omitted_count} items"} if brief.omitted_count else {})


def _render_note(text: str, count_tokens: TokenCounter) -> TextBlock:
    line = to_bullet(text)
    return TextBlock(line, count_tokens(line))
