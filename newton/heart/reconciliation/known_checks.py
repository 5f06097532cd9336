"""Checks of proposed changes that follow from known items alone: merges, duplicates, contradictions. Pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import combinations

from newton.heart.reconciliation.derived_days import list_weekdays
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import (
    CheckedItem,
    DropReason,
    KnownItem,
    Operation,
    ReconcilingInput,
)
from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.heart.speakers import concerns_safety
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.statement_candidates import has_verb
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import is_negated

MIN_SHARED = 0.5  # of the words of the shorter statement
MIN_REPEATED = 0.8  # of the words of a statement that another repeats

# A sentence with one of these as a person or thing cannot be understood alone. Not those that may also be articles.
REFERENCE = re.compile(
    r"\b(?:he|she|they|it|him|her|them|there|er|sie|ihm|ihn|dort|él|ella|ellos|ellas|allí|elle|ils|elles|lei|lui|loro"
    r"|ele|ela|eles|elas|hij|zij|он|она|они|там)\b",
    re.IGNORECASE,
)
# In a sentence in the words of a person, these stand for names.
_SPEAKER = re.compile(
    r"\b(?:i|my|me|we|our|us|ich|mein\w*|wir|unser\w*|yo|mi|mis|nosotr[oa]s|nuestr\w+|je|mon|ma|mes|nous|notre|io|mio|mia|noi"
    r"|nostr\w|eu|meu|minha|nós|noss[oa]|ik|mijn|wij|ons|я|мой|моя|мы|наш\w*)\b",
    re.IGNORECASE,
)

# What is not so: of a correction, a "no" before the new value and the number that is wrong; what it is compared with.
_UNREAL = re.compile(
    r"^\W*(?:(?:no|nope|nah|nein|nee|non|não|нет)(?:[,.!…]+\s+|\s+(?=(?:no|nein|non|не)\b|(?:the\s+)?\d+(?:st|nd|rd|th)\b)))+"
    r"|(?:(?<=, )no|\b(?:not|nicht|pas|non|niet|não|не|instead\s+of|rather\s+than|statt|anstatt"
    r"|en\s+(?:vez|lugar)\s+de|au\s+lieu\s+de))\s+(?:the\s+)?\d[\d.,:]*(?:st|nd|rd|th)?\b"
    r"|\b(?:like\s+an?|wie\s+eine?|como\s+una?|comme\s+une?)\s+[\w-]+",
    re.IGNORECASE,
)


def say_same(first: str, second: str, *, user_names: Sequence[str]) -> bool:
    """Return whether two statements have the same names, numbers and negations, and share half of their words.

    The user's own names may be missing in one of them.

    >>> say_same("Kim's dog is called Bo.", "Kim has a dog, Bo.", user_names=["Kim"])
    True
    >>> say_same("Kim runs 5 km.", "Kim runs 8 km.", user_names=["Kim"])
    False
    """
    if is_denied(first) != is_denied(second) or not _share_words(first, second, user_names):
        return False
    return has_details(first, second, user_names=user_names) and has_details(second, first, user_names=user_names)


def includes(first: str, second: str, *, user_names: Sequence[str]) -> bool:
    """Return whether two statements say the same, or one is in a person's words and the other has all its details.

    A sentence in a person's words ("Na, I'm at Roda Torta anyway.") may share few words with the other one, a
    correction only its new date or number.

    >>> includes("Dad lives out there in Graz.", "Kim's dad lives in Graz and flies in on 3 May.", user_names=["Kim"])
    True
    >>> includes("No no, the 22nd.", "Mia sees Dr. Weiss on 22 May at 9:30.", user_names=["Kim"])
    True
    >>> includes("Kim lives in Graz.", "Kim's brother Malte lives in Graz.", user_names=["Kim"])
    False
    """
    real = leave_unreal(first), leave_unreal(second)
    corrects = any(is_fragment(text) or _UNREAL.search(text) for text in (first, second))
    is_linked = share_stems(*map(list_stems, real)) or (corrects and share_anchors(*real))
    if is_denied(real[0]) != is_denied(real[1]) or not is_linked:
        return False
    has_first, has_second = (has_details(*pair, user_names=user_names) for pair in (real[::-1], real))
    if (has_first and is_spoken(first)) or (has_second and is_spoken(second)):
        return True
    return has_first and has_second and _share_words(*real, user_names)


def leave_unreal(text: str) -> str:
    """Return a statement without corrected values and comparisons, which state no facts.

    >>> leave_unreal("No no, she wants 35 and not 30."), leave_unreal("He stands there like a Bavarian.")
    ('she wants 35 and .', 'He stands there .')
    >>> leave_unreal("No sugar for Kim in school no 17.")
    'No sugar for Kim in school no 17.'
    """
    return _UNREAL.sub("", text)


def share_anchors(first: str, second: str) -> bool:
    """Return whether two statements have a number or a weekday in common."""
    return bool(_list_anchors(first) & _list_anchors(second))


def _list_anchors(text: str) -> frozenset[object]:
    return collect_evidence([text]).numbers | list_weekdays(text, date.min.replace(year=2000))


def says_all(text: str, other: str, *, user_names: Sequence[str]) -> bool:
    """Return whether a text has nearly all words of another, all its names and numbers, and its negation.

    >>> says_all("Write to me without lists.", "And please write to me without lists.", user_names=[])
    True
    >>> says_all("Schreib mir ohne Listen.", "Und schreib mir bitte ohne Listen.", user_names=[])
    True
    >>> says_all("Escríbeme sin listas.", "Escríbeme sin listas, vivo en Graz.", user_names=[])
    False
    """
    stems, other_stems = list_stems(text), list_stems(other) - list_stems(" . ".join(list_own_names(user_names)))
    is_covered = len(share_stems(other_stems, stems)) >= MIN_REPEATED * len(other_stems) > 0
    return is_covered and is_denied(text) == is_denied(other) and has_details(text, other, user_names=user_names)


def is_spoken(text: str) -> bool:
    """Return whether a statement is in spoken form: a fragment, a correction, or with pronouns for names."""
    return is_fragment(text) or any(pattern.search(text) for pattern in (_SPEAKER, REFERENCE, _UNREAL))


def is_fragment(text: str) -> bool:
    """Return whether an English text has no verb."""
    return detect_language(text) == ENGLISH and not has_verb(text)


def has_details(text: str, other: str, *, user_names: Sequence[str]) -> bool:
    """Return whether a text has all names and numbers of another, apart from the user's names."""
    sources = collect_evidence([text, *user_names])
    code = detect_language(other)
    return not find_unsupported_names(other, sources) and not find_unsupported_numbers(other, sources, code=code)


def _share_words(first: str, second: str, user_names: Sequence[str]) -> bool:
    user = list_stems(" . ".join(list_own_names(user_names)))
    shorter, longer = sorted((list_stems(first) - user, list_stems(second) - user), key=len)
    return len(share_stems(shorter, longer)) >= MIN_SHARED * len(shorter) > 0


def is_denied(text: str) -> bool:
    """Return whether a statement says that something is not so."""
    code = detect_language(text)
    return bool(load_cues().cues["negation"].search(text)) if code == ENGLISH else is_negated(text, code)


MIN_COMMON = 2  # words, of facts that may be merged
MAX_FRAGMENT = 5  # words of a sentence that says nothing alone


def check_known(
    op: Operation, text: str, known: tuple[KnownItem, ...], batch: ReconcilingInput
) -> CheckedItem | DropReason:
    """Return the checked item if the texts of the known items support it, or the reason why it is dropped."""
    if op in ("both", "newer"):
        is_pair = len(known) == 2 and known[1].item_id in known[0].doubtful_with
        return CheckedItem(op=op, line=None, known=known) if is_pair else "not a doubtful pair"
    if len(known) < (1 if op == "not_asserted" else 2):
        return "no known item"
    if len({item.kind for item in known}) > 1:
        return "wrong kind of known item"
    ordered, names = tuple(sorted(known, key=lambda item: item.day)), batch.user_names
    if op == "update" and _merges(text, ordered, batch):
        return CheckedItem(op=op, line=None, known=ordered, text=text, subject=ordered[-1].subject)
    pairs = combinations(known, 2)
    if op == "same" and all(includes(one.text, other.text, user_names=names) for one, other in pairs):
        return CheckedItem(op=op, line=None, known=ordered)
    return _check_empty(op, ordered, batch)


def _check_empty(op: Operation, known: tuple[KnownItem, ...], batch: ReconcilingInput) -> CheckedItem | DropReason:
    """Return an item that drops empty facts: all of them, or with `same` those beside a fact with content."""
    empty = tuple(item for item in known if op != "update" and _says_nothing(item, batch))
    if empty and (len(empty) < len(known)) == (op == "same"):
        return CheckedItem(op="not_asserted", line=None, known=empty)
    return "not supported by the line" if op == "not_asserted" else "not the same statement"


def _merges(text: str, known: tuple[KnownItem, ...], batch: ReconcilingInput) -> bool:
    """Return whether a text merges facts about one thing: it says all that they say, and nothing else.

    The text must have the names, numbers and nearly all words of each fact. Nothing is merged beside foreign text,
    which may mislead the model, or if a person must decide.
    """
    names = batch.user_names
    is_open = all(item.kind == "fact" and not _needs_person(item) and item.drafted_by is None for item in known)
    if not is_open or len(text) > sum(len(item.text) for item in known) or _has_foreign(batch):
        return False
    if not all(says_all(text, item.text, user_names=names) for item in known):
        return False
    if not all(_are_on_same(one.text, other.text, batch) for one, other in combinations(known, 2)):
        return False
    texts = [part for item in known for part in (item.text, item.subject)]
    sources = collect_evidence([*texts, *names], code=(code := detect_language(text)))
    stems = list_stems(leave_unreal(text))
    return (
        stems == share_stems(stems, sources.stems)
        and not find_unsupported_names(text, sources)
        and not find_unsupported_numbers(text, sources, code=code)
    )


def _are_on_same(one: str, other: str, batch: ReconcilingInput) -> bool:
    """Return whether two facts share words, and not each of them has a name that the other lacks."""
    names = batch.user_names
    user = list_stems(" . ".join(list_own_names(names)))
    if len(share_stems(list_stems(one) - user, list_stems(other))) < MIN_COMMON:
        return False
    first, second = (find_unsupported_names(a, collect_evidence([b, *names])) for a, b in ((one, other), (other, one)))
    return not (first and second)


def _says_nothing(item: KnownItem, batch: ReconcilingInput) -> bool:
    """Return whether a fact is a short fragment without a name or number of its own (not in other known facts)."""
    is_short = is_fragment(item.text) and len(item.text.split()) <= MAX_FRAGMENT and not is_denied(item.text)
    if item.kind != "fact" or item.drafted_by or item.state == "CONFIRMED" or _needs_person(item) or not is_short:
        return False
    others = [one.text for one in batch.known if one.kind == "fact" and not is_fragment(one.text)]
    sources = collect_evidence([*others, *batch.user_names])
    code = detect_language(item.text)
    return not find_unsupported_names(item.text, sources) and not find_unsupported_numbers(
        item.text, sources, code=code
    )


def _needs_person(item: KnownItem) -> bool:
    return item.state == "CORE" or item.is_vouched or concerns_safety(item.text)


def _has_foreign(batch: ReconcilingInput) -> bool:
    said = [one.text for one in batch.lines if one.source == "person"]
    return any(one.source == "foreign" for one in batch.lines) or any(split_own_words(text).foreign for text in said)


_HELD_ELSEWHERE = frozenset[Operation]({"rule", "wish", "procedure"})


def list_implied_items(batch: ReconcilingInput, kept: Sequence[CheckedItem]) -> list[CheckedItem]:
    """Return the items that follow from those that were kept, to be applied after them."""
    return [*_drop_held(batch, kept), *_settle_pairs(batch.known, kept)]


def _drop_held(batch: ReconcilingInput, kept: Sequence[CheckedItem]) -> Iterator[CheckedItem]:
    """Drop facts that a rule, wish or procedure repeats, so that they do not outlive it."""
    held = [item for item in kept if item.op in _HELD_ELSEWHERE and not item.needs_approval]
    named = {one.item_id for item in held for one in item.known}
    lines = {line.memory_id: line for line in batch.lines}
    for draft in batch.known:
        line = lines.get(draft.drafted_by) if draft.drafted_by else None
        is_repeated = any(says_all(item.text, draft.text, user_names=batch.user_names) for item in held)
        if line and (not draft.label or draft.item_id in named or is_repeated):
            yield CheckedItem(op="not_asserted", line=line, known=(draft,))


def _settle_pairs(known: Sequence[KnownItem], kept: Sequence[CheckedItem]) -> Iterator[CheckedItem]:
    """Settle doubtful pairs of facts that the model saw and did not change: both are true.

    Pairs of facts about safety stay doubtful.
    """
    unsure = {one.item_id for item in kept if item.contests for one in item.known}
    shown = [item for item in known if item.label and item.item_id not in unsure] if kept else []
    for one, other in combinations(shown, 2):
        is_safe = not (concerns_safety(one.text) and concerns_safety(other.text))
        if other.item_id in one.doubtful_with and is_safe:
            yield CheckedItem(op="both", line=None, known=(one, other))


CHANGES = frozenset[Operation]({"confirm", "update", "end", "retract", "unsure"})
UPKEEP = frozenset[Operation]({"confirm", "update", "not_asserted"})  # of known items, without a line
# Of several changes of one item on the same line, the first of these counts.
_PRECEDENCE: Sequence[Operation] = ("update", "end", "retract", "unsure", "confirm")


def find_repeated(items: Sequence[CheckedItem]) -> set[int]:
    """Return the positions of items that repeat another item, or that another item overrides."""
    repeated = set[int]()
    episodes = [n for n, item in enumerate(items) if item.op == "episode"]
    repeated |= set(episodes[:-1])
    seen = set[object]()
    for n, item in enumerate(items):
        key = (item.op, item.line and item.line.number, frozenset(one.item_id for one in item.known), item.text)
        if key in seen:
            repeated.add(n)
        seen.add(key)
    said = {one.item_id for item in items if item.line for one in item.known}
    for n, item in enumerate(items):
        if item.line is None and item.op in UPKEEP and any(one.item_id in said for one in item.known):
            repeated.add(n)
        if item.op in CHANGES and item.line and any(_overrides(other, item) for other in items):
            repeated.add(n)
    return repeated


def _overrides(other: CheckedItem, item: CheckedItem) -> bool:
    """Return whether a change on a later line, or a stronger one on the same line, replaces an item."""
    if other is item or other.op not in CHANGES or other.line is None or item.line is None:
        return False
    if not {one.item_id for one in item.known} <= {one.item_id for one in other.known}:
        return False
    if other.line.number != item.line.number:
        return other.line.number > item.line.number and other.op not in ("confirm", "unsure")
    return _PRECEDENCE.index(other.op) < _PRECEDENCE.index(item.op)
