"""Tenets: the lines of an agent's identity, such as instructions and values, in order of priority. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.errors import InputError
from newton.ids import new_id
from newton.memory import hygiene
from newton.memory.memory import TokenCounter, digest
from newton.memory.representations import one_line, to_bullet

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

    `said_on` is the day on which the user laid it down in a conversation; None for other lines.
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
    """Return the normalized text without words of courtesy, so that a wish equals the line of the identity made of it.

    >>> reduce_wish("OK, please keep answers short. Thanks!")
    'keep answers short'
    """
    return _COURTESY.sub("", normalize_line(text)).strip() or normalize_line(text)


def diff_tenets(before: Sequence[UUID], after: Sequence[UUID]) -> TenetDiff:
    return TenetDiff(tuple(one for one in after if one not in before), tuple(one for one in before if one not in after))
