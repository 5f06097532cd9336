"""Division of a message into its writer's own text and the lines of a chat or mail thread pasted into it. Pure.

The forms, of which `chat_lines.yaml` has the words: a time before or behind the name of each speaker
(of messengers and of programs for teams), mails with a header or a line such as "On 3 May, Ana wrote:", names
in angle brackets, or two speakers with a colon behind their names who speak of themselves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import dropwhile, pairwise
from typing import Literal, NamedTuple

from newton.text.languages import read_data
from newton.text.words import COMMON_WORDS

MAX_NAME_CHARACTERS = 64
MAX_LINES = 100  # of a chat whose statements are read
MAX_TITLE_WORDS = 6  # of a line above a chat that only introduces it
MIN_PLAIN_LINES = 2  # of a chat without times

_NAME = r"(?P<name>[^\W\d_][^\n:：<>\[\](){}|,;“”\"?!]{0,38}?)"
_TIME = r"(?:\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?\s?m\.?)?)"
_DATE = r"(?:[^\n\[\](){}:：<>]{0,30}?[\d\s,.;年月日])?"
_STAMP = rf"(?:[\[(]{_DATE}{_TIME}[\])]|\d[\d./-]{{3,9}}\d,?\s{_TIME})"
_TEXT = r"\s*(?P<text>[^\n]*)"
# A line with a time and a speaker; the text follows, or stands on the next lines.
_TIMED = (
    re.compile(rf"[ \t>\u200e]*{_STAMP}\s*(?:[-–—]\s*)?<?{_NAME}>?\s*(?:[:：>](?!//){_TEXT}|$)", re.IGNORECASE),
    re.compile(rf"[ \t>]*{_NAME},?\s*[\[(]{_DATE}{_TIME}[\])]\s*(?:[:：]{_TEXT}|$)", re.IGNORECASE),
    re.compile(rf"[ \t>]*{_NAME}(?:,|\s[—–-]|\s{{2,}}|\t)\s*{_DATE}{_TIME}\s*(?:[:：]{_TEXT}|$)", re.IGNORECASE),
)
_PLAIN = (
    re.compile(rf"[ \t]*<?{_NAME}>\s+(?P<text>[^\n]+)"),
    re.compile(rf"[ \t]*[*_]{{0,2}}{_NAME}[*_]{{0,2}}\s?[:：](?!//)[*_]{{0,2}}\s*(?P<text>[^\n]+)"),
)
_INTRODUCING = re.compile(r"[:：]\s*$")
_WIDE = re.compile(r"[ \t]{4,}")
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+")
_WORD = re.compile(r"[\w'’]+")
_QUOTED_LINE = re.compile(rf"(?:^|\] )[^:“”\n]{{1,{MAX_NAME_CHARACTERS}}}: “")


class ChatRemark(NamedTuple):
    """A remark of one speaker in a pasted chat.

    The `name` is "" for the person who pasted it, None for a program, and for the "me" of somebody else's chat.
    """

    name: str | None
    text: str


class DividedMessage(NamedTuple):
    """The own text of a message, with blanks in place of the pasted lines, and what is said in these."""

    own: str
    spoken: tuple[ChatRemark, ...] = ()


_Kind = Literal["timed", "plain", "mail"]


class _Head(NamedTuple):
    """The beginning of what somebody says: its kind, the speaker, and the text in the same line."""

    kind: _Kind
    name: str
    text: str


@lru_cache(maxsize=256)
def divide_message(message: str) -> DividedMessage:
    r"""Return the own text of a message and what is said in the chat or the mails that are pasted into it.

    >>> divided = divide_message("Our chat:\n[09:14] Sam: I'm allergic to nuts\n[09:15] Me: I'm not\n\nWhat now?")
    >>> divided.own.strip()
    'What now?'
    >>> divided.spoken
    (ChatRemark(name='Sam', text="I'm allergic to nuts"), ChatRemark(name='', text="I'm not"))
    >>> divide_message("Breakfast: eggs\nLunch: soup").spoken
    ()
    """
    lines = message.split("\n")
    heads = _find_heads(message, lines)
    if not heads:
        return DividedMessage(message)
    owners, spoken = [False] * len(lines), list[ChatRemark]()
    above = next((n for n in range(next(iter(heads)) - 1, -1, -1) if lines[n].strip()), 0)
    owners[above] = _INTRODUCING.search(lines[above]) is not None or _is_title(lines[above])
    is_theirs = re.search(_read_data()["theirs"], lines[above], re.IGNORECASE) is not None
    starts = [*heads, len(lines)]
    for start, following in pairwise(starts):
        end = _find_end(lines, heads[start], start, following, is_last=following == len(lines))
        owners[start:end] = [True] * (end - start)
        below = [_QUOTE.sub("", line) for line in lines[start + 1 : end]]
        if heads[start].kind == "mail":
            below = [*dropwhile(_pattern("headers").match, below)]
        said = "\n".join([heads[start].text, *below]).strip()
        name = _name_speaker(heads[start].name)
        spoken += [ChatRemark(name or (None if is_theirs else name), said)] if said else []
    own = "\n".join(" " * len(line) if taken else line for line, taken in zip(lines, owners, strict=True))
    return DividedMessage(own, tuple(spoken[:MAX_LINES]))


def quote_line(name: str, text: str) -> str:
    """Return what somebody says as one line that says who it is; `is_quoted_line` recognizes it."""
    clean = re.sub(r'[:"“”\n]', " ", name)[:MAX_NAME_CHARACTERS]
    return f"{' '.join(clean.split())}: “{text.replace('“', '‘').replace('”', '’')}”"


def is_quoted_line(text: str) -> bool:
    """Return whether a text, which may have a date before it, says whose words it is.

    >>> is_quoted_line(quote_line("Sam", "I live here.")), is_quoted_line("Sam: I live here.")
    (True, False)
    """
    return _QUOTED_LINE.search(text) is not None


def quoted_name(text: str) -> str:
    """Return the name of the speaker of a quoted line, "" for another text."""
    return text.partition(": “")[0].rpartition("] ")[2] if is_quoted_line(text) else ""


def is_same_name(name: str, known: Iterable[str]) -> bool:
    """Return whether a name of a speaker, which may be a handle or shortened, is one of the known names of a person.

    >>> [is_same_name(one, ["Ana Kovac"]) for one in ("ana", "ana_k", "Ana Berg", "Anna")]
    [True, True, False, False]
    """
    given = _list_parts(name)
    return any(_includes(given, _list_parts(one)) or _includes(_list_parts(one), given) for one in known)


def _list_parts(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", name.casefold())


def _includes(parts: list[str], others: list[str]) -> bool:
    def fits(one: str, other: str) -> bool:
        return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])

    is_named = any(one in others for one in parts)  # not by initials alone
    return is_named and all(any(fits(one, other) for other in others) for one in parts)


def _find_heads(message: str, lines: list[str]) -> dict[int, _Head]:
    """Return the lines with which somebody begins to speak, by their numbers; none unless they are a chat or mails."""
    found = dict(_iter_heads(lines))
    timed = {n: head for n, head in found.items() if head.kind != "plain"}
    if timed:  # a name with a colon in the text of a timed chat is no speaker
        return timed if len(timed) > 1 or any(one.kind == "mail" for one in timed.values()) or _is_marked(lines) else {}
    plain = list(found)
    names = {head.name.casefold() for head in found.values()}
    if len(plain) < MIN_PLAIN_LINES or len(names) < MIN_PLAIN_LINES or plain[-1] - plain[0] > 2 * len(plain):
        return {}
    before = "\n".join(lines[: plain[0]])
    speaking = sum(map(_is_first_person, (head.text for head in found.values())))
    is_told = speaking and _pattern("chat").search(before)
    is_chat = names & _words("self") or is_told or speaking >= MIN_PLAIN_LINES
    return found if is_chat else {}


def _is_marked(lines: list[str]) -> bool:
    """Return whether the only timed line of a message is clearly one of a chat: it begins with the time."""
    return any(_TIMED[0].match(line) for line in lines)


def _iter_heads(lines: list[str]) -> Iterator[tuple[int, _Head]]:
    for number, spaced in enumerate(lines):
        line = _WIDE.sub("   ", spaced)  # the time of these expressions grows with the third power of blanks
        if len(line) <= 2 or len(line) > 2_000:
            continue
        kinds: tuple[tuple[_Kind, Iterable[re.Pattern[str]]], ...] = (
            ("mail", _mail_patterns()),
            ("timed", _TIMED),
            ("plain", _PLAIN),
        )
        if match := next(((kind, m) for kind, forms in kinds for one in forms if (m := one.match(line))), None):
            kind, found = match
            name = " ".join(found["name"].split()).strip(" *_~.-–—@")
            is_header = kind == "mail" and "text" in found.re.groupindex
            if is_header and not any(_pattern("headers").match(one) for one in lines[number + 1 : number + 3]):
                continue
            if name and (kind != "plain" or _may_speak(name)):
                yield number, _Head(kind, name, "" if kind == "mail" else (found["text"] or ""))


def _find_end(lines: list[str], head: _Head, start: int, following: int, *, is_last: bool) -> int:
    """Return the number of the line behind what somebody says: that of the next head, or of a blank line."""
    if not is_last or head.kind == "mail":
        return following
    if head.kind == "plain":
        return start + 1
    first = start + 1 if head.text else start + 2
    return next((n for n in range(first, following) if not lines[n].strip()), following)


def _is_title(line: str) -> bool:
    """Return whether a line only says that a chat follows."""
    return len(line.split()) <= MAX_TITLE_WORDS and _pattern("chat").search(line) is not None


def _name_speaker(name: str) -> str | None:
    folded = name.casefold()
    return "" if folded in _words("self") else None if folded in _words("programs") else name


def _may_speak(name: str) -> bool:
    """Return whether a word before a colon may be a name: capitalized, and no common word or label."""
    words = [one.casefold() for one in _WORD.findall(name)]
    if name.casefold() in _words("self") | _words("programs"):
        return True
    if not 1 <= len(words) <= 3 or len(name) < 2 or set(words) & (_words("labels") | COMMON_WORDS):
        return False
    return not name[0].islower()


def _is_first_person(text: str) -> bool:
    words = {one.casefold().replace("’", "'") for one in _WORD.findall(text)}
    return bool(words & _words("first")) or any(one in text for one in _words("first_parts"))


@cache
def _read_data() -> Mapping[str, str]:
    return read_data("chat_lines.yaml")


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_read_data()[name].split("; "))


def _alternatives(name: str) -> str:
    return "|".join(map(re.escape, sorted(_words(name), key=len, reverse=True)))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    form = rf"[ \t>]*(?:{_alternatives(name)})\s?[:：]" if name == "headers" else _alternatives(name)
    return re.compile(form, re.IGNORECASE)


@cache
def _mail_patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the header of a mail, and of the line before a quoted one."""
    person = r"[\"“]?(?P<name>[^\W\d_][^\n<>:：,\"”\[\]]{0,38}?)[\"”]?\s*(?:[<\[(][^>\n\])]*[>\])])?"
    forms = (
        rf"[ \t>]*(?:{_alternatives('sender')})\s?[:：]\s*{person}\s*(?P<text>)$",
        rf"[^\n]{{0,80}}?\d[^\n]{{0,40}}?(?:,|\d)\s+{person}\s*(?:{_alternatives('writes')})\s?[:：]\s*$",
        rf"[^\n]{{0,80}}?\d[^\n]{{0,40}}?\s(?:{_alternatives('written_by')})\s+{person}\s?[:：]\s*$",
    )
    return tuple(re.compile(form, re.IGNORECASE) for form in forms)
