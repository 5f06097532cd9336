"""Splitting of a person's message into clauses that may be worth remembering. Pure.

Each clause has a subject and a verb, so that it can be read alone. Openings such as "by the way" are cut off.
Questions, requests, and text that is not by the person are marked.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.standing_wishes import MAX_MESSAGE_CHARACTERS, detect_instructions, mask_foreign_text
from newton.heart.statements.commitment import find_reading, list_unasserted
from newton.heart.statements.first_words import classify_word
from newton.heart.statements.tokenizer import BREAK, START, STOP, is_latin_script, tokenize
from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.greetings import is_courtesy
from newton.text.numerals import WordToken
from newton.text.pasted_text import MASK

MAX_CLAUSE_CHARACTERS = 300
MAX_MASKED_SHARE = 0.35  # of a clause; more of it is a quotation or code
MIN_WORDS = 2
MAX_SUBJECT_WORDS = 9  # between the beginning of a clause and its verb
_PRONOUNS = frozenset({"i", "we", "they", "he", "she", "it", "you"})


class ClauseForm(StrEnum):
    """The form of a clause. `FOREIGN` is a quotation or code; of `UNREAL`, a phrase says that it is not asserted."""

    STATEMENT = "statement"
    QUESTION = "question"
    REQUEST = "request"
    FOREIGN = "foreign"
    UNREAL = "unreal"
    FRAGMENT = "fragment"


class StatementCandidate(NamedTuple):
    """A clause of a message, with its place in the message.

    `opening` is the text that was cut off before it, in lower case.
    """

    text: str
    form: ClauseForm
    opening: str
    words: tuple[WordToken, ...]
    verb: int  # the position of the first verb among the words, or -1
    masked_share: float
    sentence: int
    clause: int  # its position in the sentence
    start: int  # the offset in the message
    end: int


_SENTENCE = re.compile(
    r"\S(?:[^\n.!?]|[.!?](?![\s)])|(?<=\b[DMS][rst]|\b[dm]r)\.|(?<=\bMrs)\.|(?<=\bProf)\.|(?<=\b[A-HJ-Z])\."
    r"|(?<=\b[Nn]o)\.(?= ?\d))*[.!?)]*"
)
_LIST_NUMBER = re.compile(r"^\d{1,2}(?= +[^\W\d])", re.MULTILINE)
# A question at the end of a sentence that asks whether the sentence is true.
_TAG = re.compile(
    r"[,–—-]\s*(?:right|correct|yes|no|huh|innit|am i wrong|\w+n't (?:it|he|she|they|we|you|i))\s*\??\)?$",
    re.IGNORECASE,
)
_FORMS: Mapping[str, str] = parse_trusted(
    files("newton.heart.statements").joinpath("clause_forms.yaml").read_text(encoding="utf-8")
)
_FILLERS, _PAUSED = _FORMS["fillers"], _FORMS["paused"]
_WORK_ON, _SUBORDINATE, _SUBJECT, _ASKING, _REQUEST, _DROPPED_PRESENT = (
    re.compile(_FORMS[name], re.IGNORECASE)
    for name in ("work_on", "subordinate", "subject", "asking", "request", "dropped_present")
)
_REASON = re.compile(  # "since I can't eat nuts, what could I cook?" tells the reason
    r"[\W]*(?:\w+ )?(?:since|as|because|given(?: that)?|seeing (?:as|that)|now(?: that)?|considering)\s+"
    r"(?=(?:i|we|my|our|he|she|they|it|there|the)\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"(?:who|whose)\s+(?!(?:am|are) (?:i|you)\b)", re.IGNORECASE)  # behind whom it tells of
_WHOSE = re.compile(  # whose somebody is: "That's Ianto, Rhian's boy"
    r"[A-Z][\w-]*'s (?:\w+ )?(?:boy|girl|son|daughter|brother|sister|mum|mom|dad|mother|father|husband|wife|partner|kid"
    r"|child|friend|mate|cousin|aunt|uncle|nephew|niece|boss|neighbou?r|teacher|dog|cat)\W*"
)
_LABEL = re.compile(
    r"^((?:(?:quick|small|short|little) )?(?:update|news|fyi|correction|heads[- ]up|context|background|change"
    r"|info|btw|psa"
    r"|good news|bad news|for context|for the record|by the way|one more thing|ok|okay|well|note to self))(:)",
    re.IGNORECASE | re.MULTILINE,
)
_ONLY_PAUSED = re.compile(_PAUSED, re.IGNORECASE)
_OPENING = re.compile(
    rf"(?:(?:(?:{_FILLERS})\b(?!['’])[\s,:;!.–—-]*(?=\s|[,:;–—-])[\s,:;!.–—-]*)"
    rf"|(?:(?:{_PAUSED})\b\s*[,:;!.–—-]+\s*)|[\s,:;!.–—(-]+)*",
    re.IGNORECASE,
)
_PAUSES = " \t\n\r,;:–—(-"
_ENDING = re.compile(
    r"(?:[:;]-?[()DP]|(?<=[\s,])(?:lol|haha+|hehe|please|pls|plz|thanks|thank you|thx|cheers"
    r"|btw|fyi|yay|tho"
    r"|though|anyway|you know|but|and|so))$",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r";\s*|(?<!\s)(?:\s*;\s*|(?:\s*,)?\s+[–—-]+\s+|\s+\()|:\s+|,\s*(?:and|but|so|because|plus|cause)\s+|,\s*"
    r"|(?<!\s)\s+(?:(?:and|but|so|plus)\s+|(?=(?:pls|plz|please|can you|could you|would you)\s))",
    re.I,
)


@lru_cache(maxsize=256)  # the clauses of a message are asked for several times
def split_message(message: str, *, is_framed: bool = False) -> tuple[StatementCandidate, ...]:
    """Return the clauses of a message in order, questions and requests included.

    Return no clauses if the message is too long or not in Latin script. Nothing in a message that `is_framed` by a
    role-play or the like is the person's statement until a phrase ends that.

    >>> [one.text for one in split_message("Hi! I moved to Bergen, so where can I buy a bike?")]
    ['I moved to Bergen', 'where can I buy a bike?']
    """
    if len(message) > MAX_MESSAGE_CHARACTERS or not is_latin_script(message):
        return ()
    plain, masked = mask_message(message)
    readings, found = list_unasserted(masked, is_framed=is_framed), list[StatementCandidate]()
    for number, sentence in enumerate(_SENTENCE.finditer(masked)):
        spans, is_confirmed = _split_sentence(sentence[0]), bool(_TAG.search(sentence[0]))
        for position, (start, end) in enumerate(spans):
            span = (sentence.start() + start, sentence.start() + end)
            is_last = position == len(spans) - 1
            is_asked = is_confirmed or (is_last and sentence[0].rstrip(") ").endswith("?"))
            if clause := _to_candidate(plain, masked, span, is_asked=is_asked):
                is_own = clause.form is not ClauseForm.STATEMENT or not find_reading(readings, clause.start, clause.end)
                form = clause.form if is_own else ClauseForm.UNREAL
                found.append(clause._replace(form=form, sentence=number, clause=position))
    return tuple(found)


@lru_cache(maxsize=256)
def mask_message(message: str) -> tuple[str, str]:
    """Return a message without the numbers of its lists, and the same with masked quotations and material."""
    plain = _blank_numbers(_LABEL.sub(r"\1,", message.replace("’", "'").replace("\t", " ")))
    return plain, mask_material(mask_foreign_text(plain))


def _blank_numbers(message: str) -> str:
    """Replace the numbers of a list without points by spaces. Offsets do not change.

    >>> _blank_numbers("Two things\\n1 I moved\\n2 she did not\\n12 boxes are left")
    'Two things\\n  I moved\\n  she did not\\n12 boxes are left'
    """
    counted = [one for n, one in enumerate(_LIST_NUMBER.finditer(message), 1) if one[0] == str(n)]
    if len(counted) > 1:
        for match in counted:
            message = f"{message[: match.start()]}{' ' * len(match[0])}{message[match.end() :]}"
    return message


def mask_material(masked: str) -> str:
    """Mask the text that follows a request to work on it, such as "translate:". Offsets do not change."""
    work = _WORK_ON.search(masked)
    return masked if work is None else masked[: work.end()] + re.sub(r"[^\s.!?]", MASK, masked[work.end() :])


def _split_sentence(sentence: str) -> list[tuple[int, int]]:
    """Return start and end of each clause of a sentence. A part without subject and verb is joined to its neighbour."""
    spans, start = list[tuple[int, int]](), 0
    holds = bool(_SUBORDINATE.match(sentence, _match_end(_OPENING, sentence, 0)))
    for boundary in _BOUNDARY.finditer(sentence):
        right = sentence[_match_end(_OPENING, sentence, boundary.end()) :]
        left = sentence[start : boundary.start()]
        if not _is_boundary(left, boundary[0], right):
            continue
        reason = _REASON.match(sentence, start)
        if holds and not (reason and _asks(right)):  # the main clause of a subordinate clause
            holds = False
            continue
        start, holds = reason.end() if holds and reason else start, False
        spans.append((start, boundary.start()))
        start = boundary.end()
    return [*spans, (start, len(sentence))]


def _is_boundary(left: str, mark: str, right: str) -> bool:
    """Return whether a clause ends at a mark, which stands between the texts `left` and `right`.

    After ", so" the right side needs no subject: it may be a request.
    """
    if _WHOSE.fullmatch(right):
        return False
    if _RELATIVE.match(right) and not right.rstrip().endswith("?"):
        return False
    if _asks(right):
        return len(left.split()) >= MIN_WORDS
    is_clause = _begins_clause(right) or mark.strip(" ").casefold() == ", so"
    return is_clause and (has_verb(left) or _asks(f"{left[:1].lower()}{left[1:]}"))


def _asks(text: str) -> bool:
    return bool(_ASKING.match(text) or (_REQUEST.match(text) and not _SUBJECT.match(text)))


def _begins_clause(text: str) -> bool:
    """Return whether a text begins with a subject and its verb."""
    if _SUBORDINATE.match(text) or not _SUBJECT.match(text):
        return False
    next_boundary = next((one for one in _BOUNDARY.finditer(text) if one.start()), None)
    return has_verb(text[: next_boundary.start()] if next_boundary else text)


def has_verb(text: str) -> bool:
    """Return whether a text has a finite verb after its first word."""
    words = list_words(text)
    return find_verb(words) > 0


def list_words(text: str) -> tuple[WordToken, ...]:
    """Return the words of a clause without punctuation."""
    return tuple(word for word in tokenize(text) if word.text not in (START, BREAK, STOP))


def find_verb(words: tuple[WordToken, ...]) -> int:
    """Return the position of the first verb, neither at the beginning nor far from it; -1 if there is none."""
    for position, word in enumerate(words[: MAX_SUBJECT_WORDS + 1]):
        if position and not word.is_capitalized and _is_verb(words, position):
            return position
    return -1


def _is_verb(words: tuple[WordToken, ...], position: int) -> bool:
    text, last = words[position].text, words[position - 1].text
    if position == 1 and last in _PRONOUNS:
        return True
    if text in english.AUXILIARIES or text in ("'s", "~can", "~will", "~would", "~must", "~should", "~may"):
        return text != "'s" or position == 1
    if text.startswith("~") or last in english.POSSESSIVES or last in english.DETERMINERS:
        return False
    is_form = text in english.PAST_FORMS or (text.endswith("ed") and len(text) > 4)
    return (is_form or lemmatize(text) in VERB_LEMMAS) and not text.endswith("ing")


def _leave_out_ending(body: str) -> str:
    """Return a clause without pauses, smileys and fillers behind it. One expression for all takes exponential time."""
    while (shorter := _ENDING.sub("", body.rstrip(_PAUSES))) != body:
        body = shorter
    return body


def _to_candidate(plain: str, masked: str, span: tuple[int, int], *, is_asked: bool) -> StatementCandidate | None:
    """Return the clause at this span of the message without opening and ending phrases; None if too little is left."""
    start = _match_end(_OPENING, masked[: span[1]], span[0])
    body = masked[start : span[1]].rstrip()
    body = body[: -1 if body.endswith(")") and "(" not in body else None]
    body = _leave_out_ending(body)
    if len(body.split()) < MIN_WORDS or _ONLY_PAUSED.fullmatch(body):
        return None
    end = start + len(body)
    text = plain[start:end]
    share = body.count(MASK) / len(body)
    words = list_words(text)
    opening = " ".join(masked[span[0] : start].casefold().split())
    is_ordered = opening.endswith("so") and not _SUBJECT.match(text) and find_verb(words) < 0
    form = ClauseForm.REQUEST if is_ordered else _classify_form(body, text, share, is_asked=is_asked)
    ends_early = words[-1:] and words[-1].text in english.AUXILIARIES  # "the landlord did"
    if form is ClauseForm.STATEMENT and (ends_early or is_courtesy(text)):
        form = ClauseForm.FRAGMENT
    return StatementCandidate(text, form, opening, words, find_verb(words), share, 0, 0, start, end)


def _classify_form(body: str, text: str, masked_share: float, *, is_asked: bool) -> ClauseForm:
    if masked_share > MAX_MASKED_SHARE or len(text) > MAX_CLAUSE_CHARACTERS or body.startswith(MASK):
        return ClauseForm.FOREIGN
    if is_asked or _ASKING.match(body):
        return ClauseForm.QUESTION
    is_instruction = any(one.part == "instruction" for one in detect_instructions(text))
    if is_instruction or (_REQUEST.match(body) and not _DROPPED_PRESENT.match(body)):
        return ClauseForm.REQUEST
    return ClauseForm.STATEMENT


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def join_overlapping(message: str, part: str, other: str) -> str:
    """Return the part of a message that has both of two parts that overlap; "" if they stand apart.

    >>> join_overlapping("Hi. I moved to Oslo. It rains.", "I moved to Oslo. It rains.", "Moved to Oslo")
    'I moved to Oslo. It rains.'
    """
    starts = [message.casefold().find(one.casefold()) for one in (part, other)]
    ends = [start + len(one) for start, one in zip(starts, (part, other), strict=True)]
    return message[min(starts) : max(ends)] if max(starts) < min(ends) and min(starts) >= 0 else ""


def asks_itself(one: StatementCandidate) -> bool:
    """Return whether a clause has the form of a question or of a request, whatever mark ends its sentence."""
    return one.form in (ClauseForm.QUESTION, ClauseForm.REQUEST) and not is_declarative(one)


def is_declarative(one: StatementCandidate) -> bool:
    """Return whether a clause has the form of a statement."""
    first = one.words[0].text if one.words else ""
    kind = classify_word(one.words[0]) if one.words else ""
    is_asking = kind in ("wh", "verb", "unless") or first.startswith("~") or first in english.AUXILIARIES
    return one.verb > 0 and not is_asking
