"""Detection of goals, deadlines, rules, limits and open items, and of sentences that close or replace one. Pure.

The patterns of `item_patterns.yaml` match whole sentences of a person's own words, not quotations, code or pasted text.

Whether a new limit or rule contradicts an open one is decided by the detection of changes between facts
(`heart/statements/change_detection.py`); announced changes and finished work are recognized by their words.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from re import Pattern
from typing import Any, NamedTuple, TypeVar

from newton.content.yaml_files import parse_trusted
from newton.dialogue.brief.brief_items import BriefDraft, BriefItem, BriefKind, BriefStatus
from newton.dialogue.messages import Role
from newton.dialogue.session_summary import unquoted_sentences
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.statements.change_detection import read_change
from newton.text.english import lemmatize

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
    """Return the kinds of items of a brief (goal, deadline, rule, constraint, open item) for which a question asks.

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
            for sentence in unquoted_sentences(line):
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


SIMILAR_COSINE = 0.8  # assumed of two items of one kind with common words, because their vectors are not known yet
MIN_DROP_SHARE = 0.5  # of the words of an item that a sentence must name to take it back
MIN_CHANGE_SHARE = 0.3  # of the words of an item that a new one must share to be compared with it

_WORD = re.compile(r"[^\W_][\w'-]*")
_LATER_CLAUSE = re.compile(r",? (?:so|and|but|because|he|she|they|which|it) .*$", re.IGNORECASE)
_ABSENCE_WORDS = frozenset({"list", "missing", "miss", "leave", "left"})  # of an open item, not of its closing
_KIND_WORDS: Mapping[BriefKind, Pattern[str]] = {
    "deadline": re.compile(r"\b(?:deadline|due date|time limit)\b", re.IGNORECASE),
    "goal": re.compile(r"\b(?:goal|aim|objective)\b", re.IGNORECASE),
}


class ChangePatterns(NamedTuple):
    """The compiled patterns of `change_patterns.yaml`.

    `state`, `perfect` and `simple_past` match reports of finished work, `unfinished` denials or postponements of it,
    and `generic` words, such as "ready", in place of an item's own verb. `drop` matches withdrawals, `permission`
    permissions, `prohibition` prohibitions, and `change` announcements of a new value.
    """

    state: Pattern[str]
    perfect: Pattern[str]
    simple_past: Pattern[str]
    unfinished: Pattern[str]
    generic: Pattern[str]
    drop: Pattern[str]
    permission: Pattern[str]
    prohibition: Pattern[str]
    change: Pattern[str]


@cache
def _load_content() -> Mapping[str, Any]:
    text = files("newton.dialogue.brief").joinpath("change_patterns.yaml").read_text(encoding="utf-8")
    return parse_trusted(text)


@cache
def load_change_patterns() -> ChangePatterns:
    """Return the patterns of the file `change_patterns.yaml`."""
    content = _load_content()
    joined = {name: "|".join(content[name]).replace("{generic}", "|".join(content["generic"])) for name in content}
    return ChangePatterns(**{name: re.compile(f"(?:{joined[name]})", re.IGNORECASE) for name in ChangePatterns._fields})


@cache
def _load_words(name: str) -> frozenset[str]:
    return frozenset(word for line in _load_content()[name] for word in line.split())


class BriefChange(NamedTuple):
    """An open item that a statement ends, and the status that it gets."""

    item: BriefItem
    status: BriefStatus


def find_closed(sentence: str, items: Sequence[BriefItem]) -> BriefChange | None:
    """Return the open item that a statement reports as done or takes back; None if it closes none.

    `items` are open, the oldest first. Of several that match, the latest one is closed.
    """
    core, stems = strip_opening(sentence), extract_stems(sentence)
    for item in reversed(items):
        if load_change_patterns().drop.search(core) and _names(item, stems, core):
            return BriefChange(item, "dropped")
        if item.kind == "open_item" and _is_done(core, item.text, stems):
            return BriefChange(item, "done")
    return None


def may_close(sentence: str) -> bool:
    """Return whether a statement has a form that can close an item, whatever its topic."""
    core = strip_opening(sentence)
    forms = (
        load_change_patterns().drop.search(core),
        load_change_patterns().state.search(core),
        load_change_patterns().perfect.search(core),
        load_change_patterns().simple_past.match(core),
    )
    return any(forms)


def is_reported_done(sentence: str, open_item: str) -> bool:
    """Return whether a statement says that what an open item names is finished.

    >>> is_reported_done("I have rotated the keys.", "We still need to rotate the keys.")
    True
    """
    return may_close(sentence) and _is_done(strip_opening(sentence), open_item, extract_stems(sentence))


def find_replaced(draft: BriefDraft, items: Sequence[BriefItem]) -> BriefItem | None:
    """Return the open item of the same kind that a new item replaces; None if it replaces none."""
    others = [item for item in items if item.kind == draft.kind]
    announced = load_change_patterns().change.search(draft.text) is not None
    if draft.kind == "deadline":
        return _latest(others, lambda item: _is_same_deadline(draft.text, item.text, announced=announced))
    if draft.kind == "goal":
        shared = _latest(others, lambda item: _share(item.text, draft.text) >= MIN_CHANGE_SHARE)
        return (shared or (others[-1] if others else None)) if announced and not draft.is_weak else None
    if draft.kind == "open_item" or (draft.kind == "rule" and not announced):
        return None  # two rules on different things look like a changed value, and both hold
    return _latest(others, lambda item: _contradicts(item.text, draft.text, announced=announced))


def is_repeated(draft: BriefDraft, items: Sequence[BriefItem]) -> bool:
    """Return whether one of `items` is of the same kind and has the same content words in the same order."""
    key = _list_stems(draft.text), _is_negated(draft.text)
    return any(item.kind == draft.kind and (_list_stems(item.text), _is_negated(item.text)) == key for item in items)


def extract_stems(text: str) -> frozenset[str]:
    """Return the lemmas of the words of a text that carry its content.

    >>> sorted(extract_stems("We still need to rotate the keys."))
    ['key', 'rotate']
    """
    return frozenset(_list_stems(text))


def _list_stems(text: str) -> list[str]:
    words = (word.casefold().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return [lemmatize(word) for word in words if word not in _load_words("stop_words")]


def _is_done(core: str, open_item: str, stems: frozenset[str]) -> bool:
    """Return whether a statement says that the work of an open item is finished."""
    main = _LATER_CLAUSE.sub("", core)
    if core.rstrip().endswith("?") or load_change_patterns().unfinished.search(main):
        return False
    wanted = extract_stems(open_item) - _ABSENCE_WORDS
    missing = wanted - stems
    if not wanted or len(missing) == len(wanted):
        return False
    participles = {
        lemmatize(match[1].casefold()) for match in (*load_change_patterns().perfect.finditer(core),) if match[1]
    }
    if past := load_change_patterns().simple_past.match(core):
        participles.add(lemmatize(past[1].casefold()))
    state = load_change_patterns().state.search(core)
    if state and state["state"]:
        participles.add(lemmatize(state["state"].casefold()))
    if not missing:
        return bool(participles & wanted) or state is not None
    # the verb may be replaced by a word such as "done": "the test is in" for "add a test"
    is_generic = state is not None and (
        state["state"] is None or load_change_patterns().generic.fullmatch(state["state"])
    )
    return bool(is_generic) and len(missing) == 1 and len(wanted) > 1 and _leading_verb(open_item) in missing


def _leading_verb(text: str) -> str | None:
    """Return the lemma of the first content word of an open item, which is its verb; None without one."""
    return next(iter(_list_stems(text)), None)


def _names(item: BriefItem, stems: frozenset[str], core: str) -> bool:
    """Return whether a withdrawal or a permission applies to this item."""
    if load_change_patterns().permission.search(core) and not (
        item.kind == "rule" and load_change_patterns().prohibition.search(item.text)
    ):
        return False
    wanted = extract_stems(item.text)
    if item.kind in ("goal", "deadline") and _KIND_WORDS[item.kind].search(core):
        return not load_patterns().time.search(core)
    return bool(wanted) and len(wanted & stems) / len(wanted) >= MIN_DROP_SHARE


def _is_same_deadline(newer: str, older: str, *, announced: bool) -> bool:
    own, other = _deadline_topic(newer), _deadline_topic(older)
    return not own or not other or bool(own & other) or announced


def _deadline_topic(text: str) -> frozenset[str]:
    """Return the stems of what a deadline is for, without words such as "Friday" and "due"."""
    return extract_stems(load_patterns().time.sub(" ", text)) - _load_words("due_words")


def _contradicts(older: str, newer: str, *, announced: bool) -> bool:
    share = _share(older, newer)
    if share < MIN_CHANGE_SHARE:
        return False
    verdict = read_change(older, newer, cosine=SIMILAR_COSINE)
    return verdict.kind == "update" or (announced and (verdict.kind == "unsure" or share >= MIN_DROP_SHARE))


def _share(older: str, newer: str) -> float:
    wanted = extract_stems(older)
    return len(wanted & extract_stems(newer)) / len(wanted) if wanted else 0.0


def _is_negated(text: str) -> bool:
    return load_change_patterns().prohibition.search(text) is not None


T = TypeVar("T")


def _latest(items: Sequence[T], fits: Callable[[T], bool]) -> T | None:
    return next((item for item in reversed(items) if fits(item)), None)
