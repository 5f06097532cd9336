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
from newton.heart.wills.inferred_wills import SURE_MIN, WillPart, find_will_part
from newton.text.languages import ENGLISH, detect_language
from newton.text.sentences import split_sentences

MAX_ANNOUNCEMENT = 5  # words beside the request in a line that only announces what follows, or refers to what precedes
MAX_CHARS = 2_000  # at the beginning of a line, and at its end, that are searched for a request
MIN_TOPIC_SHARE = 0.8  # of the words of a topic that a line about it has
MIN_LINE_SHARE = 0.65  # of the words of a line that a request repeats
MAX_WILL_CHARS = 20_000  # a longer message is a document

_WORD = re.compile(r"[\u3040-\u9fff]{2}|[^\W\d_\u3040-\u9fff]+")
# A sentence, with the spaces behind it. A colon ends none: it announces what is meant.
_SENTENCE = re.compile(
    r"[^\n]*?(?:(?<!\b\w)(?<!\bdr)(?<!\bmr)(?<!\bst)[.!?…](?=\s|$)[\s.!?…)]*|[。！？]+|\n+|$)", re.IGNORECASE
)
_TABLES = (
    *("line", "next", "about", "matter", "said", "last", "it", "bare", "session", "lift"),
    *("announce", "forward", "back", "forget", "tag", "polite", "weak", "act", "spoken", "clause"),
)


_LIFT_WORD = re.compile(r"""(["'“‘„«])([^"'”’“»]{2,40})["'”’“»]""")  # in quotes: the word that ends a veil
_PLAIN = ("filler", "of", "kinds")  # tables that are no lists of expressions


class Will(NamedTuple):
    """A wish of a person about memory.

    `message`, `next` and `session` say what is not to be kept: (a part of) the message, the next one, or all of the
    session from here on; `lift` ends the latter. The others say what to forget: `last`, the person's statement before,
    what `topic` names, or what was said at the `time` that it names. `weak` asks the person. With `is_bare`, the topic
    is only named ("forget my salary"), so the person may mean something that memory does not have, as with "delete it";
    and "don't store this" may mean the next message.
    """

    scope: Literal["message", "next", "session", "lift", "last", "topic", "time", "weak", "choice"]
    topic: str = ""
    is_bare: bool = False

    @property
    def forgets(self) -> bool:
        return self.scope in ("last", "topic", "time", "weak")


class WillReading(NamedTuple):
    """A person's will, None without one, and the part of the message that may be stored."""

    will: Will | None
    kept: str


@lru_cache(maxsize=1_024)
def read_will(text: str, *, is_answer: bool = False) -> WillReading:
    """Return the will that a person's message states, and what remains of the message to store.

    "Forget that" before another task, or if it `is_answer` to a question, may only mean "never mind": the person is
    asked.

    >>> read_will("The van is at the garage. Off the record: my boss drinks.")
    WillReading(will=Will(scope='message', topic='', is_bare=False), kept='The van is at the garage.')
    >>> read_will("Forget what I said about the biopsy.").will, read_will("Don't let me forget the milk.").will
    (Will(scope='topic', topic='the biopsy', is_bare=False), None)
    """
    if len(text) > MAX_WILL_CHARS:
        return WillReading(None, text)
    own = mask_quotations(text)
    spans = [(m.start(), m.end()) for m in _SENTENCE.finditer(text) if m[0].strip()]
    for start, end in spans:
        sentence = _plain(own[start:end])
        if sentence.strip() and (found := _read_sentence(sentence)) is not None:
            return _place(found, sentence, text, (start, end), is_answer=is_answer)
    if detect_language(text) != ENGLISH:
        return WillReading(None, text)
    part = find_will_part(own, spans)
    return _place_part(part, text, is_answer=is_answer) if part else WillReading(None, text)


def _place_part(part: WillPart, text: str, *, is_answer: bool) -> WillReading:
    """Return the reading of a message in which the reader of messages has found the part that is a will."""
    before, after = text[: part.start].strip(" ,;:-–—(\n"), text[part.end :].strip(" ,;:-–—)\n")
    rest = " ".join(filter(None, (before, after)))
    request = _plain(text[part.start : part.end])
    topic = _strip_request(request)
    will, kept = Will("last", before, is_bare=True), ""
    if part.act in ("next", "session", "lift"):
        will, kept = Will(part.act), rest if part.act == "lift" else before
    elif part.act == "veil" and (rest or topic):  # what comes behind the request, else all of the message
        will, kept = Will("message"), before if after and not (before and refers_to_earlier(request)) else ""
    elif part.act == "topic" and topic:
        will, kept = Will("topic", topic, is_bare=True), rest
    elif not before and part.act != "veil":
        is_loose = _begins_task(after) if after else is_answer
        will, kept = (
            (Will("last"), "") if part.probability >= SURE_MIN and not is_loose else (Will("weak", is_bare=True), text)
        )
    return WillReading(None, text) if will.forgets and takes_back(after) else WillReading(will, kept)


def _strip_request(request: str) -> str:
    """Return the words of a request that name something."""
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", request)
    return " ".join(word for word in words if word.lower() not in _load_fillers() and list_stems(word))


def _place(found: Will, sentence: str, text: str, span: tuple[int, int], *, is_answer: bool) -> WillReading:
    """Return the reading of a message with a will in one of its sentences."""
    before, after = text[: span[0]].strip(), text[span[1] :].strip()
    if found.forgets and takes_back(after):
        return WillReading(None, text)
    is_loose = found == Will("last") and not before and not _search("spoken", sentence)
    if is_loose and (_begins_task(after) if after else is_answer):
        return WillReading(Will("weak", is_bare=True), text)
    if found.scope == "session" and (word := _LIFT_WORD.search(_plain(text[slice(*span)]))):
        found = found._replace(topic=word[2])
    if found.scope == "weak":
        return WillReading(found, text) if found.is_bare else WillReading(Will("weak", text), "")
    if found.scope == "last" and before:  # what "it" means is in the sentences before it
        return WillReading(found._replace(topic=before, is_bare=True), "")
    if found.forgets or found.scope == "lift":
        return WillReading(found, " ".join(filter(None, (before, after))))
    return _place_veil(found, sentence, (before, after))


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
        ("it", lambda found: Will("last", found.string, is_bare=True)),
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


def _place_veil(will: Will, sentence: str, around: tuple[str, str]) -> WillReading:
    """Return what a veil covers: the rest of the message, all of it, or another message."""
    before, after = around
    if will.scope == "session" or (_search("announce", sentence) and not after):
        return WillReading(will if will.scope == "session" else Will("next"), before)
    if not _is_alone(sentence):
        refers = len(_WORD.findall(sentence)) <= 2 * MAX_ANNOUNCEMENT and _search("back", sentence) and not after
        return WillReading(Will("message"), "" if refers and ":" not in sentence else before)
    is_forward = bool(_search("forward", sentence)) or sentence.rstrip().endswith((":", "："))
    if is_forward and not after:
        return WillReading(Will("next"), before)
    if after:  # in the middle of a message, "that" may mean either side
        is_backward = before and _search("back", sentence) and not is_forward
        return WillReading(Will("message"), "" if is_backward else before)
    if before:
        return WillReading(Will("message"), "")
    is_announced = _search("next", sentence) and not _search("back", sentence)
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
    if chosen and len(plain.split()) <= 2 * MAX_ANNOUNCEMENT and "?" not in plain:
        return ListChoice(tuple(sorted(one for one in chosen if 0 <= one < count)))
    if any(re.search(one, plain, re.IGNORECASE) for table in yaml_tables().values() for one in table["all"]):
        return ListChoice(tuple(range(count)))
    return None


def find_request(text: str) -> Literal["line", "next"] | None:
    """Return `line` if a text asks not to keep it, `next` if it asks not to keep what follows, else None.

    >>> [find_request(text) for text in ("Between us: I have asthma.", "Don't store that.", "I don't store milk.")]
    ['next', 'line', None]
    """
    plain = _flatten(text)
    if found := _search("line", plain):
        refers_back = refers_to_earlier(plain[found.start() :])
        return "line" if refers_back and not plain.endswith(":") else "next"
    if _search("next", plain):
        return "next"
    return "line" if _search("about", plain) else None


def find_topic(text: str, previous: str = "") -> str | None:
    """Return the topic of earlier lines that a text asks not to keep; None if it names none.

    The topic of a request that only refers to the question in `previous` is that of the question.

    >>> find_topic("Forget what I said about the biopsy."), find_topic("Forget the bus.")
    ('the biopsy', None)
    """
    plain = _flatten(text)
    if found := _search("about", plain):
        return found[1]
    if find_request(text) is None:
        return None
    found = _search("matter", plain)
    if found is None and previous.rstrip().endswith("?") and says_little(text):
        found = _search("matter", _flatten(previous))
    return found and found[1]


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


def says_little(text: str) -> bool:
    """Return whether a text has few words beside a request."""
    return _says_little(_flatten(text))


def asks_to_forget(text: str) -> bool:
    """Return whether a text asks for the end of something known, with weaker words than those of a will.

    >>> [asks_to_forget(text) for text in ("Kim owes me 30, forget it after.", "Don't forget that Kim owes me 30.")]
    [True, False]
    """
    return _search("forget", text.replace("’", "'")) is not None


def _is_alone(sentence: str) -> bool:
    """Return whether a sentence has nothing but a request: no word of its own, no number, nothing behind its colon."""
    rest = sentence
    for table in ("line", "next", "forward", "back"):
        for pattern in _load_patterns()[table]:
            rest = pattern.sub(" ", rest)
    words = set(re.findall(r"[^\W_]+", rest.lower())) - _load_fillers()
    return not list_stems(" ".join(words)) and not re.search(r"\d", rest)


@cache
def _load_fillers() -> frozenset[str]:
    return frozenset(word for table in yaml_tables().values() for word in str(table["filler"]).split())


def _says_little(plain: str) -> bool:
    for table in ("line", "next", "about", "matter"):
        for pattern in _load_patterns()[table]:
            plain = pattern.sub(" ", plain)
    return plain.rstrip().endswith((":", "：")) or len(_WORD.findall(plain)) <= MAX_ANNOUNCEMENT


def _plain(text: str) -> str:
    return text.replace("’", "'").replace("\t", " ").replace("\n", " ")


def _flatten(text: str) -> str:
    """Return the beginning and the end of a text as one line, because requests are found there."""
    ends = text if len(text) <= 2 * MAX_CHARS else f"{text[:MAX_CHARS]} {text[-MAX_CHARS:]}"
    return " ".join(ends.split()).replace("’", "'")


def _search(table: str, text: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.search(text) for pattern in _load_patterns()[table])), None)


@cache
def yaml_tables() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the expressions by language and table, with their named parts filled in."""
    text = files("newton.heart.wills").joinpath("will_words.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Sequence[str]]] = yaml.safe_load(text)
    parts = loaded.pop("parts")

    def fill(one: str) -> str:
        while "%" in one:
            one = re.sub(r"%(\w+)%", lambda match: str(parts[match[1]]), one)
        return one

    return {
        code: {name: ones if name in _PLAIN else [fill(one) for one in ones] for name, ones in tables.items()}
        for code, tables in loaded.items()
    }


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
