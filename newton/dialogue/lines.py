"""Lines of dialogue as values, and each line as a memory of kind `exchange`. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.memory.memory import Draft, Teller, Trust, digest
from newton.memory.representations import Count, forms, one_line

Role = Literal["user", "assistant", "system", "tool"]

# Whoever speaks in a role is believed so much. A transcript's system lines were not said by this agent's operator.
TRUST_OF_ROLE: dict[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message. `ref` is the caller's id of it; `memorable` is false for what only repeats memories."""

    role: Role
    content: str
    said_at: datetime
    name: str | None = None
    ref: str | None = None
    memorable: bool = True

    @property
    def speaker(self) -> str:
        return self.name or self.role.capitalize()

    @property
    def own_ref(self) -> str:
        """The caller's id, or one that the same line gets again when it is sent again."""
        if self.ref:
            return self.ref
        return digest(self.role, self.name or "", self.content, self.said_at.isoformat()).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A line at its place in a session."""

    session_id: UUID
    position: int
    line: Line


def exchange(placed: Placed, *, before: Line | None, memory_id: UUID, by: Teller, count: Count) -> Draft:
    """The line as a memory: evidence, shown with its date and speaker and found by what surrounds it too."""
    line = placed.line
    return Draft(
        memory_id=memory_id,
        kind="exchange",
        state="ACTIVE",
        forms=forms(line.content, count=count, prefix=f"[{line.said_at:%Y-%m-%d}] {line.speaker}: "),
        full_text=None,
        indexed=f"{line.speaker}: {line.content}",
        parts=cues(line, before=before),
        occurred_at=line.said_at,
        created_at=by.now,
        origin=by.origin,
        trust=TRUST_OF_ROLE[line.role],
        content_hash=digest(str(placed.session_id), line.own_ref, line.content),
    )


def cues(line: Line, *, before: Line | None) -> tuple[str, ...]:
    """The texts whose vectors stand for the line."""
    return (spoken(line),)


def spoken(line: Line) -> str:
    return f"{line.speaker}: {one_line(line.content)}"


def previous(lines: Sequence[Line], known: Line | None) -> list[Line | None]:
    """For each line the one before it; for the first, what the session held already."""
    return [known, *lines[:-1]] if lines else []
