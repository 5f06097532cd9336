"""Lines of dialogue as values, and each line as a memory of kind `exchange`. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.memory.memory import Draft, Teller, Trust, digest
from newton.memory.representations import Count, forms, one_line
from newton.memory.spans import spoken_of

Role = Literal["user", "assistant", "system", "tool"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

# Whoever speaks in a role is believed so much. A transcript's system lines were not said by this agent's operator.
TRUST_OF_ROLE: dict[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message. `ref` is the caller's id of it; `memorable` is false for what only repeats memories.

    `nth` tells apart lines without a ref that are alike in everything, as when somebody says "yes" twice in a second.
    """

    role: Role
    content: str
    said_at: datetime
    name: str | None = None
    ref: str | None = None
    memorable: bool = True
    nth: int = 0

    @property
    def speaker(self) -> str:
        return self.name or self.role.capitalize()

    @property
    def words(self) -> tuple[str, str | None, str]:
        """What may not change under a ref."""
        return self.role, self.name, self.content

    @property
    def own_ref(self) -> str:
        """The caller's id, or one that the same line gets again when it is sent again."""
        if self.ref:
            return self.ref
        return digest(self.role, self.name or "", self.content, self.said_at.isoformat(), str(self.nth)).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A line at its place in a session, with the tokens of its content."""

    session_id: UUID
    position: int
    tokens: int
    line: Line


def exchange(placed: Placed, *, memory_id: UUID, by: Teller, count: Count) -> Draft:
    """The line as a memory: evidence, shown word for word with its date and speaker, and found by them too."""
    line = placed.line
    spoken = f"{line.speaker}: {line.content}"
    return Draft(
        memory_id=memory_id,
        kind="exchange",
        state="ACTIVE",
        forms=forms(line.content, count=count, prefix=f"[{line.said_at:%Y-%m-%d}] {line.speaker}: "),
        full_text=None,
        indexed=f"{spoken}\n{day_in_words(line.said_at)}",
        cue=one_line(spoken),
        occurred_at=line.said_at,
        created_at=by.now,
        origin=by.origin,
        trust=TRUST_OF_ROLE[line.role],
        content_hash=digest(str(placed.session_id), line.own_ref, line.content),
        ref=line.ref,
        thread=placed.session_id,
        place=placed.position,
        times=spoken_of(line.content, at=line.said_at),
    )


def day_in_words(at: datetime) -> str:
    """The date as people write it, whatever the system's language.

    >>> day_in_words(datetime(2023, 5, 8))
    '8 May 2023'
    """
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"
