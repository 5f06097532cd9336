"""Prompts of two model calls: reconciling lines, in batches that fit the model, and shortening messages. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, StringConstraints

from newton.heart.reconciliation.answer_reader import SCHEMA
from newton.heart.reconciliation.known_checks import says_all
from newton.heart.reconciliation.reconciling_types import KnownItem, KnownKind, NewLine, ReconcilingInput
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.memory.hygiene import remove_prompt_marks
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line
from newton.text.questions import is_only_question
from newton.text.sentences import split_sentences
from newton.text.stems import WORD

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
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class ReconcilingPrompt(NamedTuple):
    """The two messages of the call. `system` is the same in each call, so that a server can cache it."""

    system: str
    user: str


def number_batch(batch: ReconcilingInput) -> ReconcilingInput:
    """Return the input with the lines numbered from 1 and the known items sorted by day and labelled (F1, R1, ...).

    Facts stored from new lines are labelled apart, in the order of the lines; one that a known rule repeats gets none.
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
    """Return the known rule or wish of the user that repeats a fact stored from a line (draft); None if none does."""
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
    return (resources.files("newton.heart.reconciliation") / "reconcile.md").read_text(encoding="utf-8").strip()


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
    """Yield a line with marks around its drafts (facts stored from it), then the drafts that are not in it verbatim.

    `following` is the line after it. A line of the assistant that asks and proposes nothing is left out.
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
    """Return a line with a mark around the text `draft`, or each of its sentences; None if the line has other words.

    The texts must not contain angle brackets. Text within a mark is not marked again.

    >>> mark_draft("evening. sis is in Graz, mind you! She bakes.", "S1", "Sis is in Graz. She bakes.")
    'evening. <S1 sis is in Graz>, mind you! <S1 She bakes.>'
    >>> mark_draft("Sis lives here, in Graz.", "S1", "Sis lives in Graz.")
    """
    return _mark(line, label, [draft]) or _mark(line, label, split_sentences(draft) or [draft])


def _mark(line: str, label: str, sentences: Sequence[str]) -> str | None:
    parts, start = list[str](), 0
    for sentence in sentences:
        words = r"[^\w<>]+".join(WORD.findall(sentence))
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
        asked = [sentence for sentence in split_sentences(whole) if sentence.endswith(("?", "？"))]
        return asked[-1][-MAX_ASSISTANT_CHARACTERS:] if asked else ""
    if len(whole) <= MAX_LINE_CHARACTERS:
        return whole
    return f"{whole[: MAX_LINE_CHARACTERS // 4]} … {whole[-MAX_LINE_CHARACTERS * 3 // 4 :]}"


def _may_confirm(line: NewLine) -> bool:
    is_short = len(line.text.split()) <= MAX_CONFIRMING_WORDS
    return line.source == "person" and not line.is_read and is_short and not is_only_question(line.text)


def list_shown_lines(lines: Sequence[NewLine]) -> list[NewLine]:
    """Return the lines up to the last one of a person, because other lines count only if a person confirms them."""
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


MAX_LINES = 40  # new ones in one call: of more, a model loses some
MAX_KNOWN = 60
MIN_KNOWN, KNOWN_PER_LINE = 36, 4  # facts, procedures and decisions for a line of a person, up to the maximum
CONTEXT_LINES = 3  # already read, before the new ones
ANSWER_TOKENS_PER_ITEM = 80  # an item for each draft, and one for each line of a person
MIN_ANSWER_TOKENS = 300
MESSAGE_TOKENS = 30  # around the messages
SAFETY_SHARE = 0.95  # of the window, because token counts of other models are estimates
WORD_WEIGHT = 0.15  # of a shared word, beside the cosine similarity
OTHER_KINDS_WEIGHT = 0.2  # of rules, wishes, decisions and open questions, of which there are few


class BatchSize(NamedTuple):
    """The maximum number of new lines and of known items of a call."""

    lines: int
    known: int


# From the largest to the smallest.
SIZES = (
    BatchSize(MAX_LINES, MAX_KNOWN),
    BatchSize(24, 40),
    BatchSize(16, 24),
    BatchSize(8, 16),
    BatchSize(4, 10),
    BatchSize(2, 6),
    BatchSize(1, 4),
)


def split_batches(batch: ReconcilingInput, *, window_tokens: int, count_tokens: TokenCounter) -> list[ReconcilingInput]:
    """Return the input as numbered batches that fit the window of the model with their answers, oldest lines first.

    Each batch has up to three lines before its new ones as context, and the known items nearest to its lines. The list
    is empty if the window is too small for one line; a line that is too long for any batch is shortened in the prompt.
    """
    new = [line for line in batch.lines if not line.is_read]
    budget = int(window_tokens * SAFETY_SHARE)
    batches: list[ReconcilingInput] = []
    start = 0
    while start < len(new):
        candidates = (_build_batch(batch, new[start : start + size.lines], size.known) for size in SIZES)
        fitting = (one for one in candidates if count_prompt(one, count_tokens) + estimate_answer(one) <= budget)
        candidate = next(fitting, None)
        if candidate is None:
            return []
        batches.append(candidate)
        start += sum(not line.is_read for line in candidate.lines)
    return batches


def estimate_answer(batch: ReconcilingInput) -> int:
    """Return the maximum number of tokens to ask of the model for the answer to a batch."""
    persons = [line for line in batch.lines if line.source == "person" and not line.is_read]
    items = len(persons) + sum(len(batch.list_drafts(line)) for line in persons)
    return MIN_ANSWER_TOKENS + ANSWER_TOKENS_PER_ITEM * items


def count_prompt(batch: ReconcilingInput, count_tokens: TokenCounter) -> int:
    """Return the number of tokens of the prompt of a batch, with its schema."""
    prompt = render_prompt(batch)
    return count_tokens(prompt.system) + count_tokens(prompt.user) + count_tokens(str(SCHEMA)) + MESSAGE_TOKENS


def _build_batch(batch: ReconcilingInput, new: Sequence[NewLine], max_known: int) -> ReconcilingInput:
    first = batch.lines.index(new[0])
    before = [replace(line, is_read=True) for line in batch.lines[max(0, first - CONTEXT_LINES) : first]]
    lines = (*before, *new)
    persons = sum(line.source == "person" for line in new)
    new_ids = {line.memory_id for line in new}
    drafts = [item for item in batch.known if item.drafted_by in new_ids]
    limit = min(max_known, MIN_KNOWN + KNOWN_PER_LINE * persons)
    # a sentence of a later line is not known yet; those of the new lines take no room from what they may change
    known = _pick_nearest([one for one in batch.known if one.drafted_by is None], lines, limit)
    return number_batch(replace(batch, lines=lines, known=(*drafts, *known)))


def _pick_nearest(known: Sequence[KnownItem], lines: Sequence[NewLine], limit: int) -> list[KnownItem]:
    """Return the known items nearest to the lines, by their vectors and words; rules and wishes first."""
    stems = frozenset[str]().union(*(list_stems(line.text) for line in lines if line.source != "foreign"))
    ids = {line.memory_id for line in lines}
    nearest = sorted(known, key=lambda item: _measure_nearness(item, stems, ids), reverse=True)
    orders = [item for item in nearest if item.kind in ("rule", "wish")][:limit]
    others = [item for item in nearest if item.kind not in ("rule", "wish")]
    return [*orders, *others[: max(limit - len(orders), limit // 2)]]


def _measure_nearness(item: KnownItem, stems: frozenset[str], memory_ids: Set[UUID]) -> float:
    cosines = (cosine for memory_id, cosine in item.similarities.items() if memory_id in memory_ids)
    shared = share_stems(list_stems(f"{item.text} {item.attribute}"), stems)
    return max(cosines, default=0.0) + WORD_WEIGHT * len(shared) + (0.0 if item.kind == "fact" else OTHER_KINDS_WEIGHT)


ASSISTANT = "Assistant"  # as a message without a name of its speaker has it
TOKENS_PER_WORD = 2  # of nine in ten summaries of a strong model, most in English with names and amounts, at most 1.96
MIN_WORDS = 6

SentenceText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ShortenedOutput(BaseModel):
    """The shortened text."""

    model_config = ConfigDict(frozen=True)

    words: SentenceText


def build_shortening_prompt(text: str, *, speaker: str, said_on: date, max_tokens: int) -> str:
    """Return the prompt that asks the model to shorten a message to at most `max_tokens` tokens.

    The model is asked for a number of words, because it cannot count tokens.
    """
    prompt = (resources.files("newton.heart.reconciliation") / "compress.md").read_text(encoding="utf-8")
    return prompt.format(
        text=_escape_fence(text),
        speaker=_escape_fence(speaker),
        addressee="the user" if speaker == ASSISTANT else "the assistant",
        day=f"{said_on:%Y-%m-%d}",
        max_words=max(max_tokens // TOKENS_PER_WORD, MIN_WORDS),
    )


def _escape_fence(text: str) -> str:
    """Return the text as one line without angle brackets, so that it cannot close the tag around it in a prompt."""
    return one_line(text).replace("<", "‹").replace(">", "›")
