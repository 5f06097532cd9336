"""Notes of a context about what memory does not have, and entries about what did not fit. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from newton.cognition.assembly.render import TextBlock
from newton.cognition.assembly.sections import BriefSection, ExtraSection, TaskSection
from newton.cognition.pending_approvals import PendingApproval, list_lines
from newton.memory.memory import TokenCounter
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.representations import to_bullet
from newton.text.time_expressions import TimeRange

NOTHING_KNOWN = "Earlier conversations and notes say nothing about this."
UNCERTAIN = "Earlier conversations and notes may not answer this."
EMPTY_RANGE = "Memory has nothing from the requested time ({})."
INCOMPLETE = "Not searched for this input, because it took too long or failed: {}. Memory may have more about it."
TO_TELL = "To tell the user, once: "
# The beginnings of the notes that are about one input, and of those about what memory lacks for it.
ABSENCE_NOTES = (NOTHING_KNOWN, UNCERTAIN, EMPTY_RANGE.partition("{")[0])
INPUT_NOTES = (*ABSENCE_NOTES, INCOMPLETE.partition("{")[0])


class MissingSource(NamedTuple):
    """The effect of a source or part of a context that is missing, as a clause, and what the context then lacks.

    `content` is None if the context lacks no content, because the source only helps to rank or to select a frame.
    """

    effect: str
    content: str | None = None


# By the name of the source, or of the part that reads its result.
MISSING_SOURCES = {
    "memories": MissingSource("no memory was searched", "stored memories"),
    "embeddings": MissingSource("memories were searched by words only", "memories by meaning"),
    "question encoder": MissingSource(
        "memories that resemble the question were searched, so answers in other words may be missing"
    ),
    "words": MissingSource("memories were searched by meaning only", "memories by words"),
    "times": MissingSource("memories of the requested time were not searched", "memories of the requested time"),
    "standing statements": MissingSource("standing wishes were not searched", "standing wishes"),
    "replies of the session": MissingSource(
        "replies of the session that are in quarantine were not searched", "earlier replies of the session"
    ),
    "identity and constraints": MissingSource(
        "the context has no identity lines and no censors", "identity and constraints"
    ),
    "session": MissingSource("the context has no session state", "the state of the session"),
    "tasks": MissingSource("`newton tasks` shows all of them", "the tasks of the session"),
    "brief": MissingSource("`newton sessions brief` shows all of it", "the brief of the session"),
    "entities and procedures": MissingSource(
        "the context has no entities and no triggered procedures", "entities and procedures"
    ),
    "entities": MissingSource("the context has no memories of related entities", "memories of entities"),
    "procedure triggers": MissingSource("a triggered procedure may be missing", "triggered procedures"),
    "events": MissingSource("the context has no recent events", "recent events"),
    "input embedding": MissingSource("the frame was selected by the whole input"),
    "session artifacts": MissingSource("the context has no artifacts of the session", "artifacts of the session"),
    "tool results": MissingSource("the context has no results of tools", "results of tools"),
    "choice of tool results": MissingSource("the context has no results of tools", "results of tools"),
    "triggered or injected memories": MissingSource(
        "a triggered procedure or a memory put into the session may be missing", "memories put into the session"
    ),
    "web search": MissingSource("the web was not searched", "the web"),
    "censors by meaning": MissingSource("censors were matched by words only"),
    "current focus": MissingSource("the context has no messages of the session", "earlier messages of the session"),
    "selection": MissingSource("the context has no memories", "stored memories"),
    "context": MissingSource("the context has no memories", "stored memories"),
}


def render_nothing_known_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context for which memory has nothing relevant."""
    return _render_note(NOTHING_KNOWN, count_tokens)


def render_uncertain_note(count_tokens: TokenCounter) -> TextBlock:
    """Return the note of a context whose memories probably lack what the input asks for."""
    return _render_note(UNCERTAIN, count_tokens)


def render_incomplete_note(missing: Mapping[str, str], count_tokens: TokenCounter) -> TextBlock | None:
    """Return the note that names what could not be searched; None if `missing` has nothing of the kind.

    To have no embedding model is a setting, and no failure.
    """
    contents = [one.content for name, one in MISSING_SOURCES.items() if missing.get(name) not in (None, NO_EMBEDDER)]
    named = ", ".join(dict.fromkeys(filter(None, contents)))
    return _render_note(INCOMPLETE.format(named), count_tokens) if named else None


def render_empty_range_note(time_ranges: Sequence[TimeRange], count_tokens: TokenCounter) -> TextBlock:
    """Return the note that memory has nothing from the requested times."""
    phrases = ", ".join(time_range.phrase for time_range in time_ranges)
    return _render_note(EMPTY_RANGE.format(phrases), count_tokens)


def render_approval_notes(pending: Sequence[PendingApproval], count_tokens: TokenCounter) -> list[TextBlock]:
    """Return the notes of what waits for the approval of the user, whom the model is to tell of it."""
    return [_render_note(f"{TO_TELL}{line}", count_tokens) for line in list_lines(pending)]


def strip_approval_note(note: TextBlock) -> str:
    """Return the line of such a note that a person is told."""
    return note.text.removeprefix(f"- {TO_TELL}").rstrip("\n")


def describe_omissions(extra: ExtraSection, tasks: TaskSection, brief: BriefSection) -> Mapping[str, str]:
    """Return entries for `missing` that count what does not fit: lines of the caller, tasks and items of the brief."""
    lines, count = extra.omitted_count, tasks.omitted_count
    missing = {"additional": f"no room for the last {lines} lines of the additional text"} if lines else {}
    missing |= {"tasks": f"no room for {count} tasks"} if count else {}
    return missing | ({"brief": f"no room for {brief.omitted_count} items"} if brief.omitted_count else {})


def _render_note(text: str, count_tokens: TokenCounter) -> TextBlock:
    line = to_bullet(text)
    return TextBlock(line, count_tokens(line))
