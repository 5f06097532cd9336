"""Tenets, the lines of an agent's identity: their form, priority, repeats and contradictions. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.errors import InputError
from newton.ids import new_id
from newton.memory import hygiene
from newton.memory.memory import TokenCounter, digest
from newton.memory.representations import one_line, to_bullet
from newton.text.english import lemmatize

# By the cost of a violation: constraints and instructions before style.
IdentityPart = Literal["boundary", "instruction", "protocol", "value", "preference", "character"]
IDENTITY_PARTS: tuple[IdentityPart, ...] = get_args(IdentityPart)

MAX_LINE_TOKENS = 100  # one fifth of the layer's budget

# Parts spoken by the person; the agent states the rest about itself. The prefix makes clear who "me" is.
_USER_PARTS: frozenset[IdentityPart] = frozenset({"instruction", "preference"})

_COURTESY = re.compile(
    r"\b(?:please|kindly|thanks|thank you)\b ?|^(?:(?:ok|okay|hi|hello|hey|oh|also|and|so|well|great|good) )+"
)
_NON_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class IdentityTenet:
    """One line of the identity. `tokens` counts the line as a context shows it.

    `said_on` is the day on which the user stated it in a conversation; None for other lines.
    """

    tenet_id: UUID
    part: IdentityPart
    text: str
    tokens: int
    said_on: date | None = None

    @property
    def is_of_user(self) -> bool:
        """Return whether the line is a rule or a wish of the user, which the user may lift in a conversation."""
        return self.part in _USER_PARTS


class Identity(NamedTuple):
    """The tenets of one version of the identity in order of creation, and the texts of removed lines.

    Version 0 has no tenets.
    """

    version: int
    tenets: tuple[IdentityTenet, ...]
    removed_texts: frozenset[str] = frozenset()

    @property
    def by_priority(self) -> list[IdentityTenet]:
        """The tenets sorted by priority, as a context shows them."""
        return sorted(self.tenets, key=lambda tenet: IDENTITY_PARTS.index(tenet.part))


EMPTY_IDENTITY = Identity(0, ())


class TenetDiff(NamedTuple):
    """The difference of two versions: the ids of the tenets only in the later one, and only in the earlier one."""

    added: tuple[UUID, ...]
    removed: tuple[UUID, ...]


def format_tenet(part: IdentityPart, text: str, said_on: date | None = None) -> str:
    """Return the text of a tenet. Instructions and preferences are marked as words of the user.

    >>> format_tenet("preference", "Call me Max"), format_tenet("value", "Honest before kind")
    ('The user says: Call me Max', 'Honest before kind')
    >>> format_tenet("instruction", "Never suggest nuts", date(2026, 11, 27))
    'Rule of the user (2026-11-27): Never suggest nuts'
    """
    if part not in _USER_PARTS:
        return text
    if said_on is None:
        return f"The user says: {text}"
    return f"{'Rule' if part == 'instruction' else 'Wish'} of the user ({said_on}): {text}"


def render_tenet(part: IdentityPart, text: str, said_on: date | None = None) -> str:
    """Return the tenet as a bulleted line of a context."""
    return to_bullet(format_tenet(part, text, said_on))


def make_tenet(
    part: IdentityPart, text: str, count_tokens: TokenCounter, *, said_on: date | None = None
) -> IdentityTenet:
    """Return a new tenet. Raises InputError for a text that is empty or too long for one line.

    What the user said in a conversation, on the day `said_on`, may be longer and have several lines, which are joined.
    """
    clean = hygiene.clean_text if said_on else hygiene.clean_name
    line = one_line(clean(text, what="line"))
    tokens = count_tokens(render_tenet(part, line, said_on))
    if tokens > MAX_LINE_TOKENS:
        message = f"The line has {tokens} tokens; the maximum is {MAX_LINE_TOKENS}."
        raise InputError(message, hint="Split the text into several lines.")
    return IdentityTenet(new_id(), part, line, tokens, said_on)


def is_valid_line(part: IdentityPart, text: str, count_tokens: TokenCounter, *, said_on: date | None = None) -> bool:
    """Return whether the text can be a line of the identity: one line that is not too long."""
    try:
        make_tenet(part, text, count_tokens, said_on=said_on)
    except InputError:
        return False
    return True


def fingerprint(text: str) -> bytes:
    """Return a hash of the text that is the same for another case or punctuation."""
    return digest(normalize_line(text))


def normalize_line(text: str) -> str:
    """Return the text in lower case without punctuation.

    >>> normalize_line("Answer in French, please!")
    'answer in french please'
    """
    # a text without words is returned unchanged
    return _NON_WORD.sub(" ", text.casefold()).strip() or text


def reduce_wish(text: str) -> str:
    """Return the normalized text without polite words, so that a wish equals the identity line created from it.

    >>> reduce_wish("OK, please keep answers short. Thanks!")
    'keep answers short'
    """
    return _COURTESY.sub("", normalize_line(text)).strip() or normalize_line(text)


def diff_tenets(before: Sequence[UUID], after: Sequence[UUID]) -> TenetDiff:
    return TenetDiff(tuple(one for one in after if one not in before), tuple(one for one in before if one not in after))


LineRelation = Literal["same", "against"]

# Words that only express permanence or the addressee.
_REPLY_NOUNS = r"(?:answers?|repl(?:y|ies)|responses?|messages?)"
_LASTING = re.compile(
    r"\bfrom (?:now|here|today|this point)(?: on)?(?: out)?\b|\bstarting (?:now|today)\b|\bgoing forward\b"
    r"|\bhenceforth\b|\bin (?:the )?future\b|\bby default\b|\bunless i (?:say|tell you|ask)(?: otherwise)?\b"
    rf"|\b(?:in|to|for|with) (?:all|every|each)(?: of)?(?: your| my)? {_REPLY_NOUNS}\b"
)
# Function words, and synonyms of answer and answering.
_FILLER_WORDS = """
a all always an and answer are as at be do ever every explanation for give i in is it its just keep kindly like make me
measure message more much must my need of on only our please prefer really reply remember respond response should so
speak spelling sure talk text that the them things to unit units use very want we when whenever with write you your
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_NEGATION_WORDS = "never not no don't dont without avoid stop skip hate dislike omit"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_PLEASE = re.compile(r",? please\b")
_INSTEAD = re.compile(r"(?:,|,? and|,? but) (?:never|not)\b.*|,? (?:over|rather than|instead of)\b.*")
# In each row the sides, separated by |, exclude each other; the words of one side are synonyms.
_EXCLUSIVE_ROWS = (
    "metric | imperial",
    "celsius | fahrenheit",
    "kilometre kilometer | mile",
    "short brief concise terse | long detailed lengthy thorough verbose",
    "formal | informal casual",
    "polite gentle | blunt",
    "tab | space",
    "british | american",
    "lowercase | uppercase",
    "plain | markdown",
    "euro | dollar | franc | yen | sterling",
    "24-hour | 12-hour",
    "arabic | chinese | czech | danish | dutch | english | finnish | french | german | greek | hebrew | hindi"
    " | hungarian | italian | japanese | korean | norwegian | polish | portuguese | romanian | russian | spanish"
    " | swedish | turkish | ukrainian",
)
_EXCLUSIVE_SIDES = [[frozenset(map(lemmatize, side.split())) for side in row.split("|")] for row in _EXCLUSIVE_ROWS]
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# Only the person's own name: "always call functions by their full name" names nobody.
_REQUEST_PREFIX = (
    r"(?:(?:please|kindly|just|always|only|you|can|may|should|must|i|want|would|like|to|prefer|really),? )*"
)
_NAMING_REQUEST = re.compile(
    rf"{_REQUEST_PREFIX}(?P<never>(?:(?:never|not|don't|dont|do not|stop)(?: ever)? )?)(?:to )?"
    r"(?:(?:call(?:ing)?|address(?:ing)?|refer(?:ring)? to) me|be (?:called|addressed|referred to))(?: as| by)? "
    r"(?P<name>.+)"
    r"|my (?P<pronouns>pronouns) are (?P<are>.+)"
)


class _ParsedLine(NamedTuple):
    """An identity line, prepared for comparison.

    `forbids` means that the line contains a negation. `words` are its content words, `owners` its words "my" and
    "your", and `naming` the pronouns or the name by which the person wants to be called.
    """

    forbids: bool = False
    words: tuple[str, ...] = ()
    owners: frozenset[str] = frozenset()
    naming: tuple[str | None, str] | None = None


def compare_lines(first: str, second: str) -> LineRelation | None:
    """Return `same` if two lines say the same, `against` if they contradict each other, and None otherwise.

    >>> compare_lines("Always answer in metric units", "From now on use imperial units, please")
    'against'
    >>> compare_lines("Always answer in French", "Answer in French from now on")
    'same'
    >>> compare_lines("Never suggest meat", "Never suggest fish")
    """
    if normalize_line(first) == normalize_line(second):
        return "same"
    one, other = _parse_line(first), _parse_line(second)
    if one.naming and other.naming and one.naming[0] == other.naming[0]:
        return _compare_naming(one, other)
    if not (one.words and other.words) or (one.owners and other.owners and one.owners.isdisjoint(other.owners)):
        return None
    if one.words == other.words:
        return "same" if one.forbids == other.forbids else "against"
    return None if one.forbids or other.forbids or not _are_exclusive(one.words, other.words) else "against"


def _compare_naming(first: _ParsedLine, second: _ParsedLine) -> LineRelation | None:
    """Compare two lines on how to call the person: two names exclude each other, a forbidden name only itself."""
    equal = first.naming == second.naming
    if first.forbids == second.forbids:
        return "same" if equal else None if first.forbids else "against"
    return "against" if equal else None


def _are_exclusive(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two lines differ only in words that exclude each other, such as "metric" and "imperial"."""
    for sides in _EXCLUSIVE_SIDES:
        first_sides, second_sides = ([side for side in sides if side.intersection(words)] for words in (first, second))
        if len(first_sides) == len(second_sides) == 1 and first_sides != second_sides:
            return [w for w in first if w not in first_sides[0]] == [w for w in second if w not in second_sides[0]]
    return False


def _parse_line(line: str) -> _ParsedLine:
    text = _LASTING.sub(" ", line.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).strip(" ,")
    if request := _NAMING_REQUEST.match(text):
        name = normalize_line(_PLEASE.sub("", _INSTEAD.sub("", request["name"] or request["are"])))
        return _ParsedLine(forbids=bool(request["never"]), naming=(request["pronouns"], name))
    words = _WORD.findall(_INSTEAD.sub("", text))
    content = [word for word in words if word not in _NEGATIONS | _FILLERS and lemmatize(word) not in _FILLERS]
    owners = frozenset(word for word, following in pairwise(words) if word in ("my", "your") and following in content)
    return _ParsedLine(forbids=not _NEGATIONS.isdisjoint(words), words=tuple(map(lemmatize, content)), owners=owners)
