"""The prompt of the reconciling call: a fixed system prompt, and the known items and new lines as the user message."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib import resources
from itertools import groupby
from typing import NamedTuple

from newton.heart.reconciliation.reconciling_types import KnownItem, KnownKind, NewLine, ReconcilingInput
from newton.heart.reconciliation.same_statements import says_all
from newton.memory.hygiene import remove_prompt_marks
from newton.memory.representations import one_line
from newton.text.questions import is_only_question

MAX_FOREIGN_CHARACTERS = 300
MAX_ASSISTANT_CHARACTERS = 160  # of the last question of a line that no person may confirm with the next one
MAX_CONFIRMING_WORDS = 12
MAX_LINE_CHARACTERS = 2_000
MAX_ITEM_CHARACTERS = 500
MAX_NAME_CHARACTERS = 60
QUESTION = "What do the lines change? Answer with JSON."

LABEL_LETTERS: Mapping[KnownKind, str] = {
    "fact": "F",
    "procedure": "P",
    "decision": "D",
    "rule": "R",
    "wish": "W",
    "open": "O",
}
DRAFT_LETTER = "S"  # of facts that are sentences of a new line
_HEADINGS: Mapping[KnownKind, str] = {
    "fact": "Facts",
    "procedure": "Procedures",
    "decision": "Decisions",
    "rule": "Rules of the user",
    "wish": "Wishes of the user",
    "open": "Open questions",
}
_SHOWN_STATES: Mapping[str, str] = {"CONFIRMED": "confirmed", "UNSETTLED": "unsettled"}
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?…？])\s+")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class ReconcilingPrompt(NamedTuple):
    """The two messages of the call. `system` is the same in each call, so that a server can cache it."""

    system: str
    user: str


def number_batch(batch: ReconcilingInput) -> ReconcilingInput:
    """Return the input with the lines numbered from 1 and the known items sorted by day and labelled (F1, R1, ...).

    Sentences of new lines are labelled apart, in the order of the lines; one that a known rule repeats has no label.
    """
    lines = tuple(replace(line, number=number) for number, line in enumerate(batch.lines, 1))
    numbers = {line.memory_id: line.number for line in lines if not line.is_read}
    drafts = sorted(
        (item for item in batch.known if item.drafted_by in numbers),
        key=lambda item: (numbers[item.drafted_by or item.item_id], item.item_id),
    )
    shown = [item for item in drafts if not find_repeating_rule(item, batch)]
    labelled = [replace(item, label=f"{DRAFT_LETTER}{number}") for number, item in enumerate(shown, 1)]
    labelled += (replace(item, label="") for item in drafts if item not in shown)
    for kind, letter in LABEL_LETTERS.items():
        items = [item for item in batch.known if item.kind == kind and item not in drafts]
        items.sort(key=lambda item: item.day)
        labelled += (replace(item, label=f"{letter}{number}") for number, item in enumerate(items, 1))
    return replace(batch, lines=lines, known=tuple(labelled))


def find_repeating_rule(draft: KnownItem, batch: ReconcilingInput) -> KnownItem | None:
    """Return the known rule or wish of the user that says what a sentence of a line says; None if none does."""
    rules = (item for item in batch.known if item.kind in ("rule", "wish"))
    return next((rule for rule in rules if says_all(rule.text, draft.text, user_names=batch.user_names)), None)


def render_prompt(batch: ReconcilingInput) -> ReconcilingPrompt:
    """Return the prompt for a batch whose lines and items are numbered by `number_batch`.

    Line breaks, angle brackets and marks of prompts in texts are replaced, so that no text can close its tag or
    imitate another line. Text of others is shortened, and left out where no line of a person follows it.
    """
    aliases = f" ({'; '.join(map(_to_name, batch.aliases))})" if batch.aliases else ""
    parts = [
        f"Now: {format_day(batch.now)}",
        f"User: {_to_name(batch.user_name) or 'not named'}{aliases}",
        "",
        *_render_section("known", _render_known(batch.known)),
        *_render_section("lines", _render_lines(batch)),
        QUESTION,
    ]
    return ReconcilingPrompt(load_system_prompt(), "\n".join(parts))


@cache
def load_system_prompt() -> str:
    """Return the system prompt of the reconciling call."""
    return (resources.files("newton.heart") / "prompts" / "reconcile.md").read_text(encoding="utf-8").strip()


def format_day(moment: datetime) -> str:
    """Return the weekday and date, in English whatever the locale.

    >>> format_day(datetime(2026, 11, 27))
    'Friday 2026-11-27'
    """
    return f"{_WEEKDAYS[moment.weekday()]} {moment:%Y-%m-%d}"


def _render_item(item: KnownItem) -> str:
    """Return the line of a known item: label, state if it matters, and text."""
    state = f" {_SHOWN_STATES[item.state]}:" if item.state in _SHOWN_STATES else ""
    return f"{item.label}{state} {_to_text(item.text, MAX_ITEM_CHARACTERS)}"


def _render_line(line: NewLine, following: NewLine | None, drafts: Sequence[KnownItem]) -> Iterator[str]:
    """Yield a line with its number, its speaker and the marks of its drafts, then the drafts in other words.

    `following` is the line after it. Of the assistant, a line that asks and proposes nothing is left out.
    """
    text = _to_text(line.text, MAX_FOREIGN_CHARACTERS if line.source == "foreign" else MAX_LINE_CHARACTERS)
    if line.source == "assistant" and not (text := _shorten_reply(line.text, following)):
        return
    rest = list[str]()
    for draft in drafts:
        words = _to_text(draft.text, MAX_ITEM_CHARACTERS)
        marked = mark_draft(text, draft.label, words)
        text, rest = (marked, rest) if marked else (text, [*rest, f"  <{draft.label} {words}>"])
    read = " (read)" if line.is_read else ""
    yield from (f"{line.number}{read} {_render_speaker(line)}: {text}", *rest)


def mark_draft(line: str, label: str, draft: str) -> str | None:
    """Return a line with a mark around a draft, or around each of its sentences; None if the line has other words.

    No text has angle brackets of its own. What is within a mark gets none.

    >>> mark_draft("evening. sis is in Graz, mind you! She bakes.", "S1", "Sis is in Graz. She bakes.")
    'evening. <S1 sis is in Graz>, mind you! <S1 She bakes.>'
    >>> mark_draft("Sis lives here, in Graz.", "S1", "Sis lives in Graz.")
    """
    return _mark(line, label, [draft]) or _mark(line, label, _SENTENCE_END.split(draft))


def _mark(line: str, label: str, sentences: Sequence[str]) -> str | None:
    parts, start = list[str](), 0
    for sentence in sentences:
        words = r"[^\w<>]+".join(_WORD.findall(sentence))
        found = re.compile(rf"(?<!\w){words}(?!\w)[.!?…]?", re.IGNORECASE).search(line, start) if words else None
        if found is None or line.rfind("<", 0, found.start()) > line.rfind(">", 0, found.start()):
            return None
        parts += [line[start : found.start()], f"<{label} {found[0]}>"]
        start = found.end()
    return "".join([*parts, line[start:]])


def _shorten_reply(text: str, following: NewLine | None) -> str:
    """Return a line of the assistant, whole if the next line may be a person's confirmation, else its last question."""
    whole = _to_text(text, len(text) + 2)
    if following is None or not _may_confirm(following):
        asked = [sentence for sentence in _SENTENCE_END.split(whole) if sentence.endswith(("?", "？"))]
        return asked[-1][-MAX_ASSISTANT_CHARACTERS:] if asked else ""
    if len(whole) <= MAX_LINE_CHARACTERS:
        return whole
    return f"{whole[: MAX_LINE_CHARACTERS // 4]} … {whole[-MAX_LINE_CHARACTERS * 3 // 4 :]}"


def _may_confirm(line: NewLine) -> bool:
    is_short = len(line.text.split()) <= MAX_CONFIRMING_WORDS
    return line.source == "person" and not line.is_read and is_short and not is_only_question(line.text)


def list_shown_lines(lines: Sequence[NewLine]) -> list[NewLine]:
    """Return the lines up to the last one of a person: others only count if a person then confirms them."""
    last = max((number for number, line in enumerate(lines) if line.source == "person"), default=-1)
    return list(lines[: last + 1])


def _render_speaker(line: NewLine) -> str:
    if line.source == "assistant":
        return "assistant"
    if line.source == "foreign":
        return f"foreign ({_to_name(line.foreign_kind)})" if line.foreign_kind else "foreign"
    name = _to_name(line.speaker)
    # a person cannot pass as one of the two words that code writes
    return f"{name} (person)" if name.casefold().startswith(("assistant", "foreign")) or not name else name


def _render_section(tag: str, content: Iterable[str]) -> Iterator[str]:
    yield from (f"<{tag}>", *content, f"</{tag}>", "")


def _render_known(known: Sequence[KnownItem]) -> Iterator[str]:
    for kind, heading in _HEADINGS.items():
        if items := [item for item in known if item.label.startswith(LABEL_LETTERS[kind])]:
            yield f"{heading}:"
            for day, stated in groupby(items, key=lambda item: item.day):
                yield from (f"{day:%Y-%m-%d}:", *map(_render_item, stated))


def _render_lines(batch: ReconcilingInput) -> Iterator[str]:
    shown = list_shown_lines(batch.lines)
    pairs = zip(shown, [*shown[1:], None], strict=True)
    for _, grouped in groupby(pairs, key=lambda pair: batch.day_of(pair[0])):
        lines = list(grouped)
        yield f"== {format_day(lines[0][0].said_at.astimezone(batch.zone))}"
        for line, following in lines:
            yield from _render_line(line, following, batch.list_drafts(line))


def _to_text(text: str, limit: int) -> str:
    """Return a text as one line that cannot close its tag or imitate a mark of the prompt."""
    line = one_line(remove_prompt_marks(text)).replace("<", "‹").replace(">", "›")
    return line if len(line) <= limit else f"{line[: limit - 2].rstrip()} …"


def _to_name(name: str) -> str:
    return _to_text(name, MAX_NAME_CHARACTERS).replace(":", "")
