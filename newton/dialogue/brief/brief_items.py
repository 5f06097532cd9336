"""The brief of a session: types of its items, and detection of goals, deadlines, rules and open items. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from re import Pattern
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.content.yaml_files import parse_trusted
from newton.dialogue.messages import Role
from newton.dialogue.session_summary import split_sentences
from newton.heart.identity.standing_wishes import detect_instructions

BriefKind = Literal["goal", "deadline", "rule", "constraint", "open_item"]
BriefStatus = Literal["open", "done", "replaced", "dropped"]
ClosedStatus = Literal["done", "dropped"]  # what a caller can make of an open item
BriefSource = Literal["rules", "model"]  # a model proposes, and code verifies its quotation

BRIEF_KINDS: tuple[BriefKind, ...] = get_args(BriefKind)  # by importance
KIND_LABELS: Mapping[BriefKind, str] = {
    "goal": "Goal",
    "deadline": "Deadline",
    "rule": "Rule",
    "constraint": "Constraint",
    "open_item": "Open",
}


class BriefDraft(NamedTuple):
    """A new item in the words of a message. A weak one counts only if the session has no open item of its kind."""

    kind: BriefKind
    text: str
    is_weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefItem:
    """An item of a brief, word for word as it was said in the message at `position` of the session.

    `tokens` are those of its line in a context. `memory_id` is the memory of the message; None if the message has none.
    `replaced_by` is the item that says what holds instead.
    """

    item_id: UUID
    kind: BriefKind
    text: str
    tokens: int
    position: int
    source: BriefSource
    memory_id: UUID | None
    said_at: datetime
    status: BriefStatus = "open"
    closed_at: datetime | None = None
    closed_position: int | None = None
    replaced_by: UUID | None = None


def render_brief_line(kind: BriefKind, text: str, said_at: datetime) -> str:
    """Return the text of an item in a context. A deadline names the day on which it was said, for "on Friday".

    >>> from datetime import UTC
    >>> render_brief_line("deadline", "It is due on Friday.", datetime(2026, 11, 20, tzinfo=UTC))
    'Deadline (said 2026-11-20): It is due on Friday.'
    """
    day = f" (said {said_at:%Y-%m-%d})" if kind == "deadline" else ""
    return f"{KIND_LABELS[kind]}{day}: {text}"


MAX_MESSAGE_CHARS = 8_000  # a longer message is mostly pasted text
MAX_SENTENCE_CHARS = 400  # a longer sentence is pasted text
MIN_WORDS = 3
MIN_GOAL_WORDS = 5  # of a goal that only its form shows

_OPENING = re.compile(
    r"(?:(?:ok(?:ay)?|hey|hi|hello|also|and|but|oh|btw|by the way|one more thing|so|well|thanks|thank you|great|good"
    r"|listen|note|important|reminder|ps|actually|please note|remember|alright|right|update|change of plan|newton"
    r"|just so you know|for the record)\b[\s,:;!.–—-]+)+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|‘[^’\n]*’|(?<!\w)'[^'\n]{3,}'(?!\w)")
_MATERIAL = re.compile(
    r"\b(?:translate|rewrite|rephrase|paraphrase|summari[sz]e|proofread|correct|shorten|review|analy[sz]e)\b"
    r"[^\n.]*(?::|\b(?:this|these|following|below)\b[^\n]*:)",
    re.IGNORECASE,
)
_HEADING_NAMES: Mapping[BriefKind, str] = {
    "rule": r"rules|guidelines|conventions|ground rules",
    "constraint": r"constraints|requirements|limits",
    "goal": r"goals?|objectives?|aims?",
    "deadline": r"deadlines?|due dates?|milestones",
    "open_item": r"to-?dos?|open (?:items|points|questions|tasks)|still (?:open|to do)|next steps|action items",
}
_HEADING_OPENING = r"\W*(?:(?:my|our|the|project|house|coding|some|hard|here are|these are|a few)\s)*"
_HEADINGS: Mapping[BriefKind, Pattern[str]] = {
    kind: re.compile(rf"{_HEADING_OPENING}(?:{names})\b[^.!?]{{0,40}}:\W*$", re.IGNORECASE)
    for kind, names in _HEADING_NAMES.items()
}
_ASKED_NAMES: Mapping[BriefKind, str] = {
    "goal": r"goals?|aims?|objectives?|trying to (?:do|achieve)|what (?:did|do) (?:i|we) want",
    "deadline": r"deadlines?|due|by when|until when|how (?:long|much time) do (?:i|we) have|time (?:is )?left",
    "rule": r"rules?|guidelines?|conventions?|(?:not|never) (?:to do|allowed)|may (?:i|you|we)",
    "constraint": r"constraints?|limits?|budget|requirements?|restrictions?",
    "open_item": r"to-?dos?|still (?:open|to do|missing|left)|left to do|open (?:items|points|tasks)|next steps?",
}
_ASKED: Mapping[BriefKind, Pattern[str]] = {
    kind: re.compile(rf"\b(?:{names})\b", re.IGNORECASE) for kind, names in _ASKED_NAMES.items()
}
_CODE = re.compile(r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_PAST = re.compile(r"\b(?:was|were|had been|last (?:year|month|week))\b", re.IGNORECASE)  # not a deadline any more
_CLOSERS = " \"'”’)"
_REQUESTED_HELP = ("can you help", "could you help")


class ItemPatterns(NamedTuple):
    """The compiled patterns of `item_patterns.yaml`, each of which matches at the beginning of a sentence.

    `time` names a day or a period. `one_time` limits an instruction to one occasion. `reported` begins a statement of
    others.
    """

    strong_goal: Pattern[str]
    deadline: Pattern[str]
    open_item: Pattern[str]
    rule: Pattern[str]
    constraint: Pattern[str]
    weak_goal: Pattern[str]
    time: Pattern[str]
    one_time: Pattern[str]
    reported: Pattern[str]


@cache
def load_patterns() -> ItemPatterns:
    """Return the patterns of the file `item_patterns.yaml`."""
    text = files("newton.dialogue.brief").joinpath("item_patterns.yaml").read_text(encoding="utf-8")
    content = parse_trusted(text)
    parts: dict[str, str] = {}
    for name, alternatives in content["parts"].items():
        parts[name] = _join([alternatives] if isinstance(alternatives, str) else alternatives, parts)
    groups = {**content["kinds"], "time": [parts["time"]], **{name: content[name] for name in ("one_time", "reported")}}
    return ItemPatterns(
        **{name: re.compile(_join(groups[name], parts), re.IGNORECASE) for name in ItemPatterns._fields}
    )


def _join(alternatives: Sequence[str], parts: Mapping[str, str]) -> str:
    """Join alternatives to one expression, with the parts that they name in braces."""
    joined = "|".join(alternatives)
    for name, part in parts.items():
        joined = joined.replace(f"{{{name}}}", part)
    return f"(?:{joined})"


def detect_items(text: str, *, role: Role = "user") -> list[BriefDraft]:
    """Return the items that a message adds to the brief, in its own words and order.

    Goals, deadlines, rules and constraints come only from a person; open items also from the assistant.

    >>> detect_items("Never push to main. It has to be done by Friday. How are you?")
    [BriefDraft(kind='rule', text='Never push to main.', is_weak=False), BriefDraft(kind='deadline', ...)]
    """
    drafts = [draft for sentence, kind in _iter_sentences(text) if (draft := _to_draft(sentence, kind))]
    kept = [draft for draft in drafts if role == "user" or (role == "assistant" and draft.kind == "open_item")]
    return list(dict.fromkeys(kept))


def find_asked_kinds(question: str) -> frozenset[BriefKind]:
    """Return the kinds of items that a question names.

    >>> sorted(find_asked_kinds("What is our first goal and its deadline?"))
    ['deadline', 'goal']
    """
    return frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))


def own_sentences(text: str) -> list[str]:
    """Return the sentences of a message that are its speaker's own words, without questions."""
    return [sentence for sentence, _ in _iter_sentences(text) if not sentence.rstrip(" \"'”’)").endswith("?")]


def strip_opening(sentence: str) -> str:
    """Return the sentence without words that only open it.

    >>> strip_opening("OK, by the way, it is due on Friday.")
    'it is due on Friday.'
    """
    return _OPENING.sub("", sentence, count=1) if _OPENING.match(sentence) else sentence


def _iter_sentences(text: str) -> Iterator[tuple[str, BriefKind | None]]:
    """Yield the sentences of a message, with the kind that a heading above a list gives them."""
    if len(text) > MAX_MESSAGE_CHARS:
        return
    plain = text.replace("’", "'")
    if material := _MATERIAL.search(plain):
        plain = plain[: material.start()]
    kind: BriefKind | None = None
    for line in _CODE.sub("\n", plain).splitlines():
        heading: BriefKind | None = next((one for one, pattern in _HEADINGS.items() if pattern.match(line)), None)
        is_bullet = _BULLET.match(line) is not None
        if heading or (line.strip() and not is_bullet):
            kind = heading
        if not heading:
            for sentence in split_sentences(line):
                yield sentence, kind if is_bullet else None


def _to_draft(sentence: str, kind: BriefKind | None) -> BriefDraft | None:
    is_question = sentence.rstrip(_CLOSERS).endswith("?") and not sentence.casefold().startswith(_REQUESTED_HELP)
    if len(sentence) > MAX_SENTENCE_CHARS or is_question or _QUOTED.search(sentence):
        return None
    if kind and len(sentence.split()) > 1:
        return BriefDraft(kind, sentence)
    core = strip_opening(sentence)
    if len(core.split()) < MIN_WORDS or load_patterns().reported.match(core):
        return None
    if found := _classify(core):
        return BriefDraft(found, sentence)
    is_goal = load_patterns().weak_goal.match(core) and len(core.split()) >= MIN_GOAL_WORDS
    return BriefDraft("goal", sentence, is_weak=True) if is_goal else None


def _classify(core: str) -> BriefKind | None:
    """Return the kind of the first pattern that matches; deadlines before open items, these before rules and limits."""
    patterns = load_patterns()
    if patterns.strong_goal.match(core):
        return "goal"
    if patterns.deadline.match(core) and not _PAST.search(core):
        return "deadline"
    if patterns.open_item.match(core):
        return "open_item"
    if (patterns.rule.match(core) and not patterns.one_time.search(core)) or detect_instructions(core):
        return "rule"
    return "constraint" if patterns.constraint.match(core) else None
