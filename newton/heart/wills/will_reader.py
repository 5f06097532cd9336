"""Reading of a person's will over memory in their own words: what is not to be kept, and what to forget. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

import yaml

from newton.heart.reconciliation.quoted_text import mask_quotations
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.statements.commitment import asks_to_act, takes_back
from newton.heart.statements.statement_candidates import ClauseForm, split_message
from newton.heart.wills.inferred_wills import (
    ASK_MIN,
    SENTENCE_MIN,
    SURE_MIN,
    WillPart,
    corrects,
    find_will_part,
    only_wishes,
    rate_wish,
    tells,
)
from newton.text.languages import ENGLISH, detect_language
from newton.text.sentences import split_sentences

MAX_CHOICE = 10  # words of an answer that chooses by numbers
MIN_TOPIC_SHARE = 0.8  # of the words of a topic that a line about it has
MIN_LINE_SHARE = 0.65  # of the words of a line that a request repeats
REST_MAX = 0.3  # of the probability that a sentence beside a wish is part of it
LIKELY_MAX = 0.99  # of the probability of a will that is not sure
MAX_WILL_CHARS = 20_000  # a longer message is a document

_WORD = re.compile(r"[\u3040-\u9fff]{2}|[^\W\d_\u3040-\u9fff]+")
# A sentence, with the spaces behind it. A colon ends none: it announces what is meant.
_SENTENCE = re.compile(
    r"[^\n]*?(?:(?<!\b\w)(?<!\bdr)(?<!\bmr)(?<!\bst)[.!?…](?=\s|$)[\s.!?…)]*|[。！？]+|\n+|$)", re.IGNORECASE
)
_CONDITION = re.compile(r"(?:^|[.!?]\s+)(?:if|unless|in case|should|once|when)\b[^.!?]*$", re.IGNORECASE)
_MARK = re.compile(r"[:：,，;–—]\s*|\s-+\s")  # behind which a sentence goes on
_TABLES = (
    *("line", "next", "about", "matter", "said", "last", "bare", "session", "lift"),
    *("announce", "forward", "back", "forget", "tag", "polite", "weak", "act", "spoken", "clause", "whole"),
)


# The words that end a veil: in quotes, or behind "until I say".
_LIFT_WORD = re.compile(r"""(["'“‘„«])(?P<word>[^"'”’“»]{2,40})["'”’“»]""")
_LIFT_PHRASE = re.compile(
    r"\b(?:un)?till? i(?:['’]ll|['’]ve)? (?:say|tell you|give(?: you)?|let you know)(?: that)?"
    r"(?: (?:a|the|it|its|it['’]s|is|we|we['’]re|you|you['’]re|ur|youre|are|can))*"
    r" (?P<word>(?!(?:so|otherwise|different\w*)\b)\w+(?: \w+){1,2})",
    re.IGNORECASE,
)

_UNTIL = re.compile(r"\b(?:un)?till? (?:i|we|you)\b", re.IGNORECASE)


class Will(NamedTuple):
    """A wish of a person about memory.

    `message`, `next` and `session` say what is not to be kept: (a part of) the message, the next one, or all of the
    session from here on; `lift` ends the latter. The others say what to forget: `last`, the person's statement before,
    what `topic` names, or what was said at the `time` that it names. `weak` asks the person. With `is_bare`, the topic
    is only named ("forget my salary"), so the person may mean something that memory does not have, as with "delete it";
    and "don't store this" may mean the next message. `request` is the part of the message that decides which
    statements are meant; it is not stored. `certainty` is the probability that the person wants something of memory,
    which may only show behind what was said before it, and not alone.
    """

    scope: Literal["message", "next", "session", "lift", "last", "topic", "time", "weak", "choice"]
    topic: str = ""
    is_bare: bool = False
    request: str = ""
    certainty: float = 1.0
    shows_alone: bool = True

    @property
    def forgets(self) -> bool:
        return self.scope in ("last", "topic", "time", "weak")

    @property
    def is_likely(self) -> bool:
        """Return whether it is a will without what was said before it; else its message is stored."""
        return self.shows_alone and self.certainty >= SENTENCE_MIN


class WillReading(NamedTuple):
    """A person's will, None without one, and the part of the message that may be stored."""

    will: Will | None
    kept: str


@lru_cache(maxsize=1_024)
def read_will(text: str, *, is_answer: bool = False, earlier: tuple[str, ...] = ()) -> WillReading:
    """Return the will that a person's message states, and what remains of the message to store.

    `earlier` are the person's last statements before it. "Forget that" before another task, or if it `is_answer` to a
    question, may only mean "never mind": the person is asked.

    >>> read_will("The van is at the garage. Off the record: my boss drinks.").kept
    'The van is at the garage.'
    >>> read_will("Forget what I said about the biopsy.").will.topic, read_will("Don't let me forget the milk.").will
    ('the biopsy', None)
    """
    if len(text) > MAX_WILL_CHARS:
        return WillReading(None, text)
    own = mask_quotations(text)
    spans = [(m.start(), m.end()) for m in _SENTENCE.finditer(text) if m[0].strip()]
    for span in spans:
        sentence = _plain(own[slice(*span)])
        if sentence.strip() and (found := _read_sentence(sentence)) is not None:
            is_veil = found.scope in ("message", "next")
            if is_veil and earlier and (part := _find_forgetting(own, spans, earlier)):
                return _place(_to_will(part, text, earlier), text, (part.start, part.end), is_answer=is_answer)
            return _place(found, text, _narrow(sentence, span) if is_veil else span, is_answer=is_answer)
    part = find_will_part(own, spans, earlier) if detect_language(text) == ENGLISH else None
    if part and part.act == "last" and corrects(own, earlier[-1:], part.end - 1):
        return WillReading(None, text)  # "Scratch that, I live in Linz."
    return (
        _place(_to_will(part, text, earlier), text, (part.start, part.end), is_answer=is_answer)
        if part
        else WillReading(None, text)
    )


def _find_forgetting(own: str, spans: Sequence[tuple[int, int]], earlier: tuple[str, ...]) -> WillPart | None:
    """Return the part of a message in English that means what was said before it: "off the record, that thing"."""
    part = find_will_part(own, spans, earlier) if detect_language(own) == ENGLISH else None
    return part if part and part.act in ("last", "topic") else None


def _to_will(part: WillPart, text: str, earlier: tuple[str, ...]) -> Will:
    """Return the will of a part of a message that the reader of messages has found."""
    if part.act == "next" and refers_to_earlier(text[part.start : part.end]):
        return Will("last", is_bare=True)
    if part.act in ("next", "session", "lift"):
        is_announced = part.act == "lift" and _UNTIL.search(text[part.start : part.end])
        return Will("session" if is_announced else part.act)
    if part.act == "veil":
        return Will("last", is_bare=True) if only_wishes(text, earlier) else Will("message")
    topic = _strip_request(text[part.start : part.end]) if part.act == "topic" else ""
    is_condition = _CONDITION.search(text[: part.end].rstrip(" .!?…")) is not None  # "If it rains, forget the picnic."
    certainty = 1.0 if part.probability >= SURE_MIN and part.shows_alone else min(part.probability, LIKELY_MAX)
    certainty = min(certainty, ASK_MIN) if is_condition else certainty
    if certainty < SENTENCE_MIN or not part.shows_alone:
        return Will("weak", topic, is_bare=True, certainty=certainty, shows_alone=part.shows_alone)
    return Will("topic" if topic else "last", topic, is_bare=bool(topic), certainty=certainty)


def _strip_request(request: str) -> str:
    """Return the words of a request that name something."""
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", request)
    return " ".join(word for word in words if word.lower() not in _load_fillers() and list_stems(word))


def _place(found: Will, text: str, span: tuple[int, int], *, is_answer: bool) -> WillReading:
    """Return the reading of a message with a will in one of its parts, which is the request if the rest is kept."""
    will, kept = _divide(found, text, span, is_answer=is_answer)
    return WillReading(will and will._replace(request=text[slice(*span)] if kept != text and kept else text), kept)


def _divide(found: Will, text: str, span: tuple[int, int], *, is_answer: bool) -> WillReading:
    """Return the will of a part of a message, and the part of the message that may be stored."""
    before, after = text[: span[0]].strip(" ,;:-–—(\n"), text[span[1] :].strip(" ,;:-–—)\n")
    request = _plain(text[slice(*span)])
    if found.forgets and (takes_back(after) or (found.is_bare and found.topic and is_answer)):
        return WillReading(None, text)  # "Shall I order the taxi?" "Forget the taxi."
    is_loose = found == Will("last", certainty=found.certainty) and not before and not _search("spoken", request)
    if is_loose and (_begins_task(after) if after else is_answer):
        return WillReading(Will("weak", is_bare=True), text)
    if found.scope == "weak" and (not found.is_likely or not (found.is_bare and before)):
        return WillReading(found, text) if found.is_bare else WillReading(Will("weak", text), "")
    if found.scope in ("last", "weak") and before:  # what "it" means may be in the sentences before it
        topic = before if tells(text, (0, span[0])) else ""
        return WillReading(Will("last", topic, is_bare=True, certainty=found.certainty), "")
    if found.forgets or found.scope == "lift":
        rest = (before, after) if found.scope == "lift" else map(_leave_out_wishes, (before, after))
        return WillReading(found, " ".join(filter(None, rest)))
    return _place_veil(found, request, before, after)


def _leave_out_wishes(text: str) -> str:
    """Return a text without sentences that may belong to a wish beside them, and name what is to be forgotten."""
    if detect_language(text) != ENGLISH:
        return text
    spans = [one.span() for one in _SENTENCE.finditer(text) if one[0].strip()]
    return "".join(text[slice(*span)] for span in spans if rate_wish(text, span) < REST_MAX).strip()


def _narrow(sentence: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return the span of a sentence without what it says behind a request not to keep it."""
    found = _search("line", sentence) or _search("next", sentence)
    mark = found and _MARK.search(sentence, found.end())
    return (span[0], span[0] + mark.end()) if mark and _has_content(sentence[mark.end() :]) else span


def _read_sentence(sentence: str) -> Will | None:
    """Return the will of one sentence; `message` for a veil of which the place is not known yet."""
    if _is_question(sentence):
        return None
    is_asked = bool(_search("line", sentence) or _search("next", sentence))
    readings: Sequence[tuple[str, Callable[[re.Match[str]], Will]]] = (
        ("lift", lambda _: Will("lift")),
        ("about", lambda found: Will("topic", _clean_topic(found[1]))),
        ("said", lambda found: _read_said(found[1] or "")),
        ("last", lambda found: Will("weak", is_bare=True) if _may_order_act(found.string) else Will("last")),
        ("session", lambda _: Will("session")),
        *([("matter", lambda found: Will("topic", _clean_topic(found[1])))] if is_asked else []),
        *([] if is_asked else [("bare", lambda found: Will("topic", _clean_topic(found[1]), is_bare=True))]),
    )
    wills = (read(found) for table, read in readings if (found := _search(table, sentence)))
    is_weak = not is_asked and _search("weak", sentence)
    return next(wills, Will("message") if is_asked else Will("weak") if is_weak else None)


def _begins_task(text: str) -> bool:
    """Return whether a text begins with a question or a request to the assistant."""
    first = split_sentences(text)[0]
    clauses, code = split_message(first), detect_language(first)
    asks = clauses and clauses[0].form in (ClauseForm.QUESTION, ClauseForm.REQUEST)
    return first.rstrip().endswith(("?", "？")) or (bool(asks) if code == ENGLISH else asks_to_act(first, code))


def is_clause(topic: str) -> bool:
    """Return whether a topic is what the person does, as others may do too: "I live"."""
    return _search("clause", topic) is not None


def _may_order_act(sentence: str) -> bool:
    """Return whether a sentence such as "Delete it." may mean a file: it names neither memory nor what was said."""
    return bool(_search("act", sentence)) and not _search("spoken", sentence)


def _read_said(rest: str) -> Will:
    """Return the will to forget what was said; `rest` are the words that say about what or when."""
    rest = rest.split(",", maxsplit=1)[0]
    topic = _load_topic_words().search(rest)
    if topic and topic[1].strip():
        return Will("topic", _clean_topic(topic[1]))
    return Will("time", rest.strip()) if len(_WORD.findall(rest)) else Will("last")


def _place_veil(will: Will, request: str, before: str, after: str) -> WillReading:
    """Return what a veil covers: what follows the request, all of the message, or another message."""
    if will.scope == "session":
        word = _LIFT_WORD.search(request) or _LIFT_PHRASE.search(request)
        return WillReading(will._replace(topic=word["word"] if word else ""), before)
    is_forward = bool(_search("forward", request)) or request.rstrip().endswith((":", "："))
    has_content = _has_content(request) or _has_content(after)
    is_announced = not after and (will.scope == "next" or _search("announce", request) is not None)
    if is_announced or (is_forward and not has_content):
        return WillReading(Will("next"), before)
    is_backward = refers_to_earlier(request) and not is_forward
    is_own = not re.search(r"\bthis\b", request, re.IGNORECASE)  # "this stays between us." means what follows
    if is_backward and is_own and after and not before and not _has_content(request):
        return WillReading(Will("last", is_bare=True), after)  # "Please don't store that. My son reads along."
    if has_content:
        return WillReading(Will("message"), before if after and not (before and is_backward) else "")
    if before:  # in the middle of a message, "that" may mean either side
        return WillReading(Will("message"), "")
    is_announced = _search("next", request) and not refers_to_earlier(request)
    return WillReading(Will("next") if is_announced else Will("last", is_bare=True), "")


def _is_question(sentence: str) -> bool:
    """Return whether a sentence asks something; a polite request and a request with a tag such as "ok?" do not."""
    if not sentence.rstrip(" )\n").endswith(("?", "？")):
        return False
    return not (_search("tag", sentence) or _search("polite", sentence))


def _clean_topic(topic: str) -> str:
    return " ".join(topic.split()).strip(" ,-")


class ListChoice(NamedTuple):
    """The items that a person chooses from a numbered list, from 0; none of them if empty."""

    indexes: tuple[int, ...]


def read_choice(text: str, count: int) -> ListChoice | None:
    """Return which of `count` listed items a person chooses; None if the text does not answer the list.

    >>> read_choice("yes, all", 3), read_choice("The first and 3, please.", 3), read_choice("What is the time?", 3)
    (ListChoice(indexes=(0, 1, 2)), ListChoice(indexes=(0, 2)), None)
    """
    plain = _plain(text).strip()
    for table in yaml_tables().values():
        if any(re.search(one, plain, re.IGNORECASE) for one in table["none"]):
            return ListChoice(())
    chosen = {int(one) - 1 for one in re.findall(r"(?<![\d.,:])\d{1,2}(?![\d.,:]\d)", plain)}
    for table in yaml_tables().values():
        names = [re.search(rf"(?<!\w)(?:{one})(?!\w)", plain, re.IGNORECASE) for one in table["numbers"]]
        chosen |= {index if index < len(names) - 1 else count - 1 for index, found in enumerate(names) if found}
    if chosen and len(plain.split()) <= MAX_CHOICE and "?" not in plain:
        return ListChoice(tuple(sorted(one for one in chosen if 0 <= one < count)))
    if any(re.search(one, plain, re.IGNORECASE) for table in yaml_tables().values() for one in table["all"]):
        return ListChoice(tuple(range(count)))
    return None


def is_about(text: str, topic: str, request: str = "") -> bool:
    """Return whether a text has most words of a topic, or most of its words are in a request."""
    stems, wanted = list_stems(text), list_stems(topic)
    if wanted and len(share_stems(wanted, stems)) / len(wanted) >= MIN_TOPIC_SHARE:
        return True
    return len(stems) > 1 and len(share_stems(stems, list_stems(request))) / len(stems) >= MIN_LINE_SHARE


def is_of_kind(text: str, topic: str) -> bool:
    """Return whether a text tells of the kind of thing that a topic names, in other words.

    >>> is_of_kind("I pull in 118k.", "what I earn, my pay"), is_of_kind("I deadlift 118.", "my pay")
    (True, False)
    """
    return any(named.search(topic) and telling.search(text) for named, telling in _load_kinds())


def names_kind(topic: str) -> bool:
    """Return whether a topic names a kind of thing that messages may tell in other words."""
    return any(named.search(topic) for named, _ in _load_kinds())


def refers_to_earlier(text: str) -> bool:
    """Return whether a text refers back to what was said."""
    return _search("back", text) is not None


def means_conversation(text: str) -> bool:
    """Return whether a request to memory means all of the conversation."""
    return _search("whole", _plain(text)) is not None


def asks_to_forget(text: str) -> bool:
    """Return whether a text asks for the end of something known, with weaker words than those of a will.

    >>> [asks_to_forget(text) for text in ("Kim owes me 30, forget it after.", "Don't forget that Kim owes me 30.")]
    [True, False]
    """
    return _search("forget", text.replace("’", "'")) is not None


def _has_content(text: str) -> bool:
    """Return whether a text says anything besides a request to memory: a word of its own, or a number."""
    for table in ("line", "next", "forward", "back"):
        for pattern in _load_patterns()[table]:
            text = pattern.sub(" ", text)
    return bool(_strip_request(text)) or re.search(r"\d", text) is not None


@cache
def _load_fillers() -> frozenset[str]:
    return frozenset(word for table in yaml_tables().values() for word in str(table["filler"]).split())


def _plain(text: str) -> str:
    return text.replace("’", "'").replace("\t", " ").replace("\n", " ")


def _search(table: str, text: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.search(text) for pattern in _load_patterns()[table])), None)


@cache
def yaml_tables() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the expressions by language and table."""
    text = files("newton.heart.wills").joinpath("will_words.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Sequence[str]]] = yaml.safe_load(text)
    return loaded


@cache
def _load_patterns() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    tables = yaml_tables().values()
    return {
        name: tuple(re.compile(one, re.IGNORECASE) for table in tables for one in table.get(name, ()))
        for name in _TABLES
    }


@cache
def _load_kinds() -> Sequence[tuple[re.Pattern[str], re.Pattern[str]]]:
    pairs = [pair for table in yaml_tables().values() for pair in table.get("kinds", ())]
    return [(re.compile(one[0], re.IGNORECASE), re.compile(one[1], re.IGNORECASE)) for one in pairs]


@cache
def _load_topic_words() -> re.Pattern[str]:
    words = "|".join(str(table["of"]) for table in yaml_tables().values())
    return re.compile(rf"(?:^|\s)(?:{words})\s*(\S.*)$", re.IGNORECASE)
