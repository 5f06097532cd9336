"""Notes of a context about what memory does not have, and entries about what did not fit. Pure."""

from collections.abc import Mapping, Sequence

from newton.cognition.assembly.render import TextBlock, to_bullet
from newton.cognition.assembly.sections import BriefSection, ExtraSection, TaskSection
from newton.memory.memory import TokenCounter
from newton.memory.times.time_expressions import TimeRange

NOTHING_KNOWN = "Earlier conversations and notes say nothing about this."
UNCERTAIN = "Earlier conversations and notes may not answer this."


def render_nothing_known_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context for which memory has nothing relevant."""
    return _render_note(NOTHING_KNOWN, count_tokens)


def render_uncertain_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context whose memories probably lack what the input asks for."""
    return _render_note(UNCERTAIN, count_tokens)


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
