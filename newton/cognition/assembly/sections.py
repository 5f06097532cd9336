"""Sections of a context that are not scored (identity, censors, brief, tasks, lines of the caller), and notes. Pure."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.render import TextBlock, render_item
from newton.cognition.pending_approvals import PendingApproval, list_lines
from newton.dialogue.brief.brief_items import BRIEF_KINDS, BriefItem, BriefKind, render_brief_line
from newton.dialogue.context_injections import ContextInjection
from newton.dialogue.task_tree import Task, TaskStack
from newton.heart.identity.tenets import Identity, IdentityTenet, render_tenet
from newton.memory.memory import TokenCounter
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.representations import make_short_forms, one_line, to_bullet
from newton.text.time_expressions import TimeRange


class IdentitySection(NamedTuple):
    """The identity lines in a context, in order; those omitted for lack of room, and the note that says how many.

    `removed_texts` are former identity lines; memories that repeat one are excluded from the context.
    """

    version: int = 0
    shown: tuple[IdentityTenet, ...] = ()
    omitted: tuple[IdentityTenet, ...] = ()
    removed_texts: frozenset[str] = frozenset()
    note: TextBlock | None = None

    @property
    def blocks(self) -> list[TextBlock]:
        lines = [TextBlock(render_tenet(tenet.part, tenet.text, tenet.said_on), tenet.tokens) for tenet in self.shown]
        return [*lines, self.note] if self.note else lines

    def as_json(self) -> dict[str, object]:
        return {"version": self.version, "shown": _list_ids(self.shown), "unshown": _list_ids(self.omitted)}


def select_identity_lines(identity: Identity, *, max_tokens: int) -> IdentitySection:
    """Return the identity lines by priority, up to the first that does not fit into `max_tokens`.

    Later, shorter lines are not tried, so a larger budget never loses a line that a smaller one includes.
    """
    ranked = identity.by_priority
    sizes = itertools.accumulate(tenet.tokens for tenet in ranked)
    count = sum(size <= max_tokens for size in sizes)
    return IdentitySection(identity.version, tuple(ranked[:count]), tuple(ranked[count:]), identity.removed_texts)


def _list_ids(tenets: tuple[IdentityTenet, ...]) -> list[str]:
    return [str(tenet.tenet_id) for tenet in tenets]


class CensorLine(NamedTuple):
    """A censor in a context: its id and its rendered line."""

    memory_id: UUID
    block: TextBlock


class CensorSection(NamedTuple):
    """The censors in a context; the ids of those omitted for lack of room, and the note that says how many."""

    lines: tuple[CensorLine, ...] = ()
    omitted: tuple[UUID, ...] = ()
    note: TextBlock | None = None

    @property
    def blocks(self) -> list[TextBlock]:
        lines = [line.block for line in self.lines]
        return [*lines, self.note] if self.note else lines


MAX_SIBLING_SHARE = 0.25  # largest share of the sibling tokens for one sibling
ROOT, PATH, SIBLINGS = "root", "path", "siblings"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSection:
    """The rendered tasks of a session in three layers: root goal, path, siblings. `omitted_count` tasks did not fit.

    `current_number` is the number of the current task, whose memories the search prefers; None without a task.
    """

    root: tuple[TextBlock, ...] = ()
    path: tuple[TextBlock, ...] = ()
    siblings: tuple[TextBlock, ...] = ()
    task_ids: frozenset[UUID] = frozenset()
    omitted_count: int = 0
    current_number: int | None = None

    def to_layers(self) -> Mapping[str, Sequence[TextBlock]]:
        return {ROOT: self.root, PATH: self.path, SIBLINGS: self.siblings}


NO_TASKS = TaskSection()


def build_task_section(
    stack: TaskStack, layers: Mapping[str, int], header_tokens: Mapping[str, int], *, count_tokens: TokenCounter
) -> TaskSection:
    """Render the root goal, the path to the current task, planned steps, and finished, failed or blocked siblings.

    The current task and its nearest ancestors get tokens first. Lines that are too long are cut.
    """
    if not stack.path:
        return NO_TASKS
    (root, *below), number = stack.path, stack.path[-1].number
    prefix, suffix = "Goal: " if below else "Goal, and now: ", _describe_replaced_task(root, stack)
    goal = _render_line(prefix, root, suffix, layers[ROOT] - header_tokens[ROOT], count_tokens)
    if goal is None:
        return TaskSection(omitted_count=len(stack.path) + len(stack.related), current_number=number)
    path = _render_path(below, stack, layers[PATH], count_tokens)
    replaced_id = stack.path[-1].instead_of
    others = [task for task in stack.related if task.task_id != replaced_id]
    siblings = _render_siblings(others, layers[SIBLINGS], count_tokens)
    return TaskSection(
        root=(goal,),
        path=tuple(path[task.task_id] for task in below if task.task_id in path),
        siblings=tuple(siblings[task.task_id] for task in others if task.task_id in siblings),
        task_ids=frozenset(filter(None, (root.task_id, *path, *siblings, replaced_id))),
        omitted_count=len(below) - len(path) + len(others) - len(siblings),
        current_number=number,
    )


def _render_path(
    path: Sequence[Task], stack: TaskStack, max_tokens: int, count_tokens: TokenCounter
) -> dict[UUID, TextBlock]:
    """Render the tasks below the root.

    The current one gets up to half of the tokens; its ancestors share the rest equally.
    """
    blocks: dict[UUID, TextBlock] = {}
    for remaining, task in zip(range(len(path), 0, -1), reversed(path), strict=True):
        is_current = task is path[-1]
        prefix, suffix = ("Now: ", _describe_replaced_task(task, stack)) if is_current else ("Within it: ", "")
        limit = max_tokens // 2 if is_current and remaining > 1 else max_tokens // remaining
        if block := _render_line(prefix, task, suffix, limit, count_tokens):
            blocks[task.task_id] = block
            max_tokens -= block.tokens
    return blocks


def _render_siblings(siblings: Sequence[Task], max_tokens: int, count_tokens: TokenCounter) -> dict[UUID, TextBlock]:
    blocks: dict[UUID, TextBlock] = {}
    limit = int(max_tokens * MAX_SIBLING_SHARE)
    for task in sorted(siblings, key=_rank_sibling):
        suffix = f" -> {one_line(task.words)}" if task.words else ""
        prefix = _describe_status(task)
        if block := _render_line(prefix, task, suffix, min(limit, max_tokens), count_tokens):
            blocks[task.task_id] = block
            max_tokens -= block.tokens
    return blocks


def _rank_sibling(task: Task) -> tuple[float, ...]:
    """Return the sort key of a task: planned steps first, the nearest first, then the task that changed last."""
    if not task.has_begun:
        return 0, -task.depth, task.number
    return 1, -task.changed_at.timestamp(), -task.number


def _describe_status(task: Task) -> str:
    match task.status:
        case "complete":
            return "Done: "
        case "failed":
            return "Dead end: "
        case _:
            return f"{task.status.capitalize()} (task {task.number}): "


def _describe_replaced_task(task: Task, stack: TaskStack) -> str:
    failed = next((other for other in stack.related if other.task_id == task.instead_of), None)
    return f" (instead of: {one_line(failed.goal)}, a dead end: {one_line(failed.words or '')})" if failed else ""


def _render_line(prefix: str, task: Task, suffix: str, max_tokens: int, count_tokens: TokenCounter) -> TextBlock | None:
    return _fit_line(prefix, f"{one_line(task.goal)}{suffix}", max_tokens, count_tokens)


@functools.lru_cache(maxsize=1_024)
def _fit_line(prefix: str, text: str, max_tokens: int, count_tokens: TokenCounter) -> TextBlock | None:
    """Return the line cut to `max_tokens`; None when not even one word fits. Cached, because counting is slow."""
    form = make_short_forms(text, count_tokens=count_tokens, prefix=prefix, max_tokens=max_tokens)
    fits = form.summary_tokens <= max_tokens and len(form.summary) > len(prefix) + 1
    return render_item(form.summary, form.summary_tokens) if fits else None


class BriefLine(NamedTuple):
    """A line of the brief of the session: its kind, and the memory of the message that said it, if any."""

    kind: BriefKind
    memory_id: UUID | None
    block: TextBlock


class BriefSection(NamedTuple):
    """The brief of the session: goals, deadlines, rules, constraints and open items; and the number that do not fit."""

    lines: tuple[BriefLine, ...] = ()
    omitted_count: int = 0

    @property
    def blocks(self) -> list[TextBlock]:
        return [line.block for line in self.lines]


def build_brief_section(items: Sequence[BriefItem], *, max_tokens: int) -> BriefSection:
    """Render the items that fit into `max_tokens`: by kind, the most important first; of open items the latest first.

    No line is cut, because each is shown word for word.
    """
    ranked = sorted(enumerate(items), key=lambda pair: _rank_brief_item(pair[1], pair[0]))
    shown: list[tuple[int, BriefItem]] = []
    for number, item in ranked:
        if item.tokens <= max_tokens:
            shown.append((number, item))
            max_tokens -= item.tokens
    ordered = sorted(shown, key=lambda pair: (BRIEF_KINDS.index(pair[1].kind), pair[0]))
    lines = (
        BriefLine(
            item.kind,
            item.memory_id,
            render_item(render_brief_line(item.kind, item.text, item.said_at, item.trust), item.tokens),
        )
        for _, item in ordered
    )
    return BriefSection(tuple(lines), len(items) - len(shown))


def _rank_brief_item(item: BriefItem, number: int) -> tuple[int, int]:
    return BRIEF_KINDS.index(item.kind), -number if item.kind == "open_item" else number


def count_reserved_tokens(
    extra_lines: Sequence[TextBlock], brief: Sequence[BriefItem], header_tokens: Mapping[str, int]
) -> dict[str, int]:
    """Return the tokens of the sections with the caller's lines and with the brief, headers included; 0 if empty."""
    tokens = {"additional": sum(line.tokens for line in extra_lines), "brief": sum(item.tokens for item in brief)}
    return {name: count and count + header_tokens[name] for name, count in tokens.items()}


class ExtraSection(NamedTuple):
    """The lines of the caller that fit, and the number of lines left out."""

    blocks: tuple[TextBlock, ...]
    omitted_count: int


def render_extra_lines(
    text: str, injections: Sequence[ContextInjection] = (), *, count_tokens: TokenCounter
) -> list[TextBlock]:
    """Render the injected texts of a session and the caller's text, each line as one list item.

    So no line can start a section.
    """
    injected = [render_item(line, tokens) for one in injections for line, tokens in one.lines]
    lines = filter(None, map(one_line, text.splitlines()))
    return [*injected, *(render_item(line, count_tokens(to_bullet(line))) for line in lines)]


def fit_extra_lines(blocks: list[TextBlock], *, max_tokens: int) -> ExtraSection:
    """Return the first lines that together fit into `max_tokens`. No line is cut."""
    sizes = itertools.accumulate(block.tokens for block in blocks)
    count = sum(size <= max_tokens for size in sizes)
    return ExtraSection(tuple(blocks[:count]), len(blocks) - count)


NOTHING_KNOWN = "Earlier conversations and notes say nothing about this."
UNCERTAIN = "Earlier conversations and notes may not answer this."
EMPTY_RANGE = "Memory has nothing from the requested time ({})."
INCOMPLETE = "Not searched for this input, because it took too long or failed: {}. Memory may have more about it."
TO_TELL = "To tell the user, once: "
# The beginnings of the notes that are about one input, and of those about what memory lacks for it.
ABSENCE_NOTES = (NOTHING_KNOWN, UNCERTAIN, EMPTY_RANGE.partition("{")[0])
INPUT_NOTES = (*ABSENCE_NOTES, INCOMPLETE.partition("{")[0])


class MissingSource(NamedTuple):
    """A missing source or part of a context: the effect, as a clause, and the content that the context then lacks.

    `content` is None if the context lacks no content, because the source only helps to rank or to select a frame.
    """

    effect: str
    content: str | None = None


# By the name of the source, or of the part that reads its result.
MISSING_SOURCES = {
    "memories": MissingSource("no memory was searched", "stored memories"),
    "memories above the project": MissingSource("only the project was searched", "memories above the project"),
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

    A missing embedding model is not named, because it is a setting.
    """
    contents = [one.content for name, one in MISSING_SOURCES.items() if missing.get(name) not in (None, NO_EMBEDDER)]
    named = ", ".join(dict.fromkeys(filter(None, contents)))
    return _render_note(INCOMPLETE.format(named), count_tokens) if named else None


def render_empty_range_note(time_ranges: Sequence[TimeRange], count_tokens: TokenCounter) -> TextBlock:
    """Return the note that memory has nothing from the requested times."""
    phrases = ", ".join(time_range.phrase for time_range in time_ranges)
    return _render_note(EMPTY_RANGE.format(phrases), count_tokens)


def render_approval_notes(pending: Sequence[PendingApproval], count_tokens: TokenCounter) -> list[TextBlock]:
    """Return a note for each pending approval, which asks the model to tell the user about it."""
    return [_render_note(f"{TO_TELL}{line}", count_tokens) for line in list_lines(pending)]


def strip_approval_note(note: TextBlock) -> str:
    """Return the line of an approval note without the request to the model, for a person to read."""
    return note.text.removeprefix(f"- {TO_TELL}").rstrip("\n")


def describe_omissions(extra: ExtraSection, tasks: TaskSection, brief: BriefSection) -> Mapping[str, str]:
    """Return texts with the counts of caller's lines, tasks and brief items that do not fit, by name of the part."""
    lines, count = extra.omitted_count, tasks.omitted_count
    missing = {"additional": f"no room for the last {lines} lines of the additional text"} if lines else {}
    missing |= {"tasks": f"no room for {count} tasks"} if count else {}
    return missing | ({"brief": f"no room for {brief.omitted_count} items"} if brief.omitted_count else {})


def _render_note(text: str, count_tokens: TokenCounter) -> TextBlock:
    line = to_bullet(text)
    return TextBlock(line, count_tokens(line))


def format_missing(sources: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each part of a search that was not available, with the reason and its effect."""
    for source, reason in sources.items():
        effect = f"; {MISSING_SOURCES[source].effect}" if source in MISSING_SOURCES else ""
        yield f"({source} not available: {reason}{effect})"
