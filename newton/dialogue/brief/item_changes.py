"""What a sentence does to the open items of a brief: it closes, takes back or replaces them. Pure.

Whether a new limit or rule contradicts an open one is decided by the detection of changes between facts
(`heart/statements/change_detection.py`); announced changes and finished work are recognized by their words.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from newton.dialogue.brief.brief_items import BriefDraft, BriefItem, BriefKind, BriefStatus
from newton.dialogue.brief.item_detection import TIME, strip_opening
from newton.heart.statements.change_detection import detect_change
from newton.heart.statements.lemmas import lemmatize

SIMILAR_COSINE = 0.8  # assumed of two items of one kind with common words, because their vectors are not known yet
MIN_DROP_SHARE = 0.5  # of the words of an item that a sentence must name to take it back
MIN_CHANGE_SHARE = 0.3  # of the words of an item that a new one must share to be compared with it

_WORD = re.compile(r"[^\W_][\w'-]*")
_STOP = frozenset(
    """
    a about after again all also always am an and any anyone anything are as at be been before being but by can can't
    cannot could did do does doing don don't done down each ever every everything few first for forget from get go got
    had has have haven't having he her here him his how i i'm i've if in into is isn't it it's its itself just keep last
    later leave left let list make may me mind more most must my need needs never new next no not now number of off on
    once one only open or our out over please really remember remind rule same shall she should so some somebody someone
    something sometime soon still stick such sure than that that's the their them then there these they thing this those
    to today todo to-do too under until up us use very want was we we've were what what's when whenever where which
    while who why will with without would write yes yet you your
    """.split()
)
_GENERIC_DONE = (
    r"(?:done|finished|complete|completed|fixed|in|there|here|exists?|live|ready|merged|resolved|solved|closed|working"
    r"|works|sorted|settled|taken care of|out of the way|in place|up|online|deployed|released|handled|dealt with|green)"
)
_STATE = re.compile(
    rf"\b(?:is|are|was|were|has been|have been|got|'s)(?: now| all| finally| already| also)* (?P<state>{_GENERIC_DONE}\b|\w+(?:ed|en|wn|lt|nt|ught|ung|ut|et)\b)"
    r"|\b(?:exists?|works?)(?: now| again)?\W*$|\b(?:done|finished|completed?) with\b|\b(?:finished|completed) the\b",
    re.IGNORECASE,
)
_PERFECT = re.compile(r"\b(?:have|has|'ve|'s|just|already|finally)(?: now| just| already| finally| also)* (\w+)", re.IGNORECASE)
_SIMPLE_PAST = re.compile(
    r"^(?:(?:i|we|marta|[A-Z]\w+|(?:my|our|the) \w+)(?: just| finally| already)? )?(\w+(?:ed|t|ght|wn|de|nt|ew|id|ought|aid))\b", re.IGNORECASE
)
_UNFINISHED = re.compile(
    r"\b(?:not|never|n't|tried|trying|will|'ll|would|going to|should|must|can|could|might|may|need|needs|have to|has to|if"
    r"|when|almost|nearly|half|partly|half-?way|tomorrow|planned|want|wanted|started|begun|began|refused|failed|forgot"
    r"|except|but not|no longer|supposed)\b|n't\b",
    re.IGNORECASE,
)
_LATER_CLAUSE = re.compile(r",? (?:so|and|but|because|he|she|they|which|it) .*$", re.IGNORECASE)
_DROP = re.compile(
    r"\b(?:no longer|any ?more|forget (?:about )?(?:the|that|my|our|it)|ignore (?:the|that|my|our)|scrap (?:the|that)"
    r"|drop (?:the|that)|never mind (?:the|about)|doesn't (?:apply|matter|hold)|does not (?:apply|matter|hold)"
    r"|is (?:off|lifted|cancel?led|dropped|void|moot|obsolete|gone)|has been (?:lifted|dropped|cancel?led)|there is no|there's no"
    r"|not (?:necessary|needed|required)|you (?:can|may)(?: now)?|(?:it's|it is|that's) (?:ok|okay|fine|alright|all right|allowed)"
    r"(?: now| again)? (?:to|if)|feel free to)\b",
    re.IGNORECASE,
)
_PERMISSION = re.compile(r"\b(?:you (?:can|may)|(?:it's|it is|that's) (?:ok|okay|fine|alright|all right|allowed)|feel free)\b", re.IGNORECASE)
_PROHIBITION = re.compile(r"\b(?:never|not|n't|no|ask|only|without|avoid|alone|untouched|leave)\b|n't\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"\b(?:now|instead|moved|pushed|postponed|extended|extension|brought forward|shifted|delayed|changed|rescheduled|new"
    r"|actually|from now on|after all|change of plan|correction|no longer|rather than|until .* too|back to|updated)\b|, not ",
    re.IGNORECASE,
)
_TIME = re.compile(TIME, re.IGNORECASE)
_DUE_WORDS = frozenset(
    """
    back bring date day deadline due extend extension fine finish forward gave give hand hold late launch launched move
    online postpone push ready release say short target time too work board
    """.split()
)
_KIND_WORDS: dict[BriefKind, re.Pattern[str]] = {
    "deadline": re.compile(r"\b(?:deadline|due date|time limit)\b", re.IGNORECASE),
    "goal": re.compile(r"\b(?:goal|aim|objective)\b", re.IGNORECASE),
    "rule": re.compile(r"\brules?\b", re.IGNORECASE),
    "constraint": re.compile(r"\b(?:limit|constraint|budget)\b", re.IGNORECASE),
    "open_item": re.compile(r"\b(?:to-?do|open item)\b", re.IGNORECASE),
}


class BriefChange(NamedTuple):
    """An open item that is closed, and how."""

    item: BriefItem
    status: BriefStatus


def find_closed(sentence: str, items: Sequence[BriefItem]) -> BriefChange | None:
    """Return the open item that a statement reports as done or takes back; None if it closes none.

    `items` are open, the oldest first. Of several that match, the latest one is closed.
    """
    core, stems = strip_opening(sentence), extract_stems(sentence)
    for item in reversed(items):
        if _DROP.search(core) and _names(item, stems, core):
            return BriefChange(item, "dropped")
        if item.kind == "open_item" and _is_done(core, item, stems):
            return BriefChange(item, "done")
    return None


def may_close(sentence: str) -> bool:
    """Return whether a statement has the form of one that closes an item, whatever it is about."""
    core = strip_opening(sentence)
    forms = (_DROP.search(core), _STATE.search(core), _PERFECT.search(core), _SIMPLE_PAST.match(core))
    return any(forms)


def find_replaced(draft: BriefDraft, items: Sequence[BriefItem]) -> BriefItem | None:
    """Return the open item of the same kind that a new item replaces; None if it stands beside them."""
    others = [item for item in items if item.kind == draft.kind]
    announced = _CHANGE.search(draft.text) is not None
    if draft.kind == "deadline":
        return _latest(others, lambda item: _is_same_deadline(draft.text, item.text, announced=announced))
    if draft.kind == "goal":
        shared = _latest(others, lambda item: _share(item.text, draft.text) >= MIN_CHANGE_SHARE)
        return (shared or (others[-1] if others else None)) if announced and not draft.is_weak else None
    if draft.kind == "open_item":
        return None
    return _latest(others, lambda item: _contradicts(item.text, draft.text, announced=announced))


def is_repeated(draft: BriefDraft, items: Sequence[BriefItem]) -> bool:
    """Return whether an open item already says the same with the same words of content, in the same order."""
    said = _list_stems(draft.text), _is_negated(draft.text)
    return any(item.kind == draft.kind and (_list_stems(item.text), _is_negated(item.text)) == said for item in items)


def extract_stems(text: str) -> frozenset[str]:
    """Return the lemmas of the words of a text that carry its content.

    >>> sorted(extract_stems("We still need to rotate the keys."))
    ['key', 'rotate']
    """
    return frozenset(_list_stems(text))


def _list_stems(text: str) -> list[str]:
    words = (word.casefold().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return [lemmatize(word) for word in words if word not in _STOP]


def _is_done(core: str, item: BriefItem, stems: frozenset[str]) -> bool:
    """Return whether a statement says that the work of an open item is finished."""
    main = _LATER_CLAUSE.sub("", core)
    if core.rstrip().endswith("?") or _UNFINISHED.search(main):
        return False
    wanted = extract_stems(item.text) - {"list", "missing", "miss", "leave", "left"}
    missing = wanted - stems
    if not wanted or len(missing) == len(wanted):
        return False
    participles = {lemmatize(match[1].casefold()) for match in (*_PERFECT.finditer(core),) if match[1]}
    if past := _SIMPLE_PAST.match(core):
        participles.add(lemmatize(past[1].casefold()))
    state = _STATE.search(core)
    if state and state["state"]:
        participles.add(lemmatize(state["state"].casefold()))
    if not missing:
        return bool(participles & wanted) or state is not None
    # the verb may be replaced by a word such as "done": "the test is in" for "add a test"
    is_generic = state is not None and (state["state"] is None or re.fullmatch(_GENERIC_DONE, state["state"], re.IGNORECASE))
    return bool(is_generic) and len(missing) == 1 and len(wanted) > 1 and _leading_verb(item.text) in missing


def _leading_verb(text: str) -> str | None:
    """Return the lemma of the first content word of an item, which is the verb of what is to be done."""
    return next(iter(_list_stems(text)), None)


def _names(item: BriefItem, stems: frozenset[str], core: str) -> bool:
    """Return whether a sentence that takes something back means this item."""
    if _PERMISSION.search(core) and not (item.kind == "rule" and _PROHIBITION.search(item.text)):
        return False
    wanted = extract_stems(item.text)
    if item.kind in ("goal", "deadline") and _KIND_WORDS[item.kind].search(core):
        return not _TIME.search(core)
    return bool(wanted) and len(wanted & stems) / len(wanted) >= MIN_DROP_SHARE


def _is_same_deadline(newer: str, older: str, *, announced: bool) -> bool:
    own, other = _deadline_topic(newer), _deadline_topic(older)
    return not own or not other or bool(own & other) or announced


def _deadline_topic(text: str) -> frozenset[str]:
    """Return what a deadline is for, without the words of time and of being due."""
    return extract_stems(_TIME.sub(" ", text)) - _DUE_WORDS


def _contradicts(older: str, newer: str, *, announced: bool) -> bool:
    share = _share(older, newer)
    if share < MIN_CHANGE_SHARE:
        return False
    verdict = detect_change(older, newer, cosine=SIMILAR_COSINE, vector_score=math.nan)
    return verdict.kind == "update" or (announced and (verdict.kind == "unsure" or share >= MIN_DROP_SHARE))


def _share(older: str, newer: str) -> float:
    wanted = extract_stems(older)
    return len(wanted & extract_stems(newer)) / len(wanted) if wanted else 0.0


def _is_negated(text: str) -> bool:
    return _PROHIBITION.search(text) is not None


T = TypeVar("T")


def _latest(items: Sequence[T], fits: Callable[[T], bool]) -> T | None:
    return next((item for item in reversed(items) if fits(item)), None)
