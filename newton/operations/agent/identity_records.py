"""Results of the operations on the identity, and their texts for people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from newton.heart.identity.identity_store import (
    IdentityChange,
    IdentityVersion,
    TenetProposal,
    TenetRecord,
    find_conflicts,
)
from newton.heart.identity.tenets import Identity, IdentityPart, IdentityTenet, diff_tenets
from newton.memory.lookup import short_id
from newton.memory.memory import Trust
from newton.operations.text_format import format_replaced, pluralize

ERASED_TEXT = "[erased]"
NO_LINES = 'The identity is empty. Add a line: `newton identity add instruction "Answer in metric units"`'
# Shown to the person at the command line only: the response of a request is stored, without text of a person.
HiddenText = Annotated[str, Field(exclude=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityLine:
    """A line of the identity or a proposed one. `text` is null if it was erased."""

    line_id: UUID
    section: IdentityPart
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentLine(IdentityLine):
    """A line of the current identity, and whether a context has room for it.

    `said_on` is the day on which the user laid it down in a conversation, else null.
    """

    said_on: date | None
    tokens: int
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedLine(IdentityLine):
    """A proposed line, the message that it comes from, and the current lines that it contradicts and would replace."""

    created_at: datetime
    origin: str
    trust: Trust
    session_id: UUID | None
    position: int | None
    conflicts_with: list[IdentityLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityOverview:
    """The current version of the identity, its lines, most important first, and the proposed lines.

    `max_tokens` is the room for lines in a context, and `tokens` the part of it that they use.
    """

    version: int
    max_tokens: int
    tokens: int
    lines: list[CurrentLine]
    proposals: list[ProposedLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityVersionInfo:
    """A version of the identity, with the lines added and removed since the version before.

    `restored_version` is the version that a rollback restored, else null.
    """

    version: int
    created_at: datetime
    origin: str
    trust: Trust
    change: IdentityChange
    restored_version: int | None
    reason: str | None
    added: list[IdentityLine]
    removed: list[IdentityLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEditResult:
    """The result of a change. `changed` is false if the identity was already as requested."""

    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRollback:
    """The version that was to be restored. `changed` is false if the identity equals it."""

    version: int
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawnLine:
    """The id of the line that was removed or rejected."""

    line_id: UUID
    text: HiddenText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLine:
    """The id of the accepted line, and the ids of the lines that it replaced."""

    line_id: UUID
    replaced: list[UUID]
    text: HiddenText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedLine:
    """The number of lines with the same text that were erased."""

    erased: int


def to_line(line: IdentityTenet | TenetRecord) -> IdentityLine:
    text = line.text if isinstance(line, IdentityTenet) else line.words
    return IdentityLine(line_id=line.tenet_id, section=line.part, text=text)


def to_current(tenet: IdentityTenet, *, shown: bool) -> CurrentLine:
    """Return a line of the current identity. `shown` says whether a context has room for it."""
    return CurrentLine(
        line_id=tenet.tenet_id,
        section=tenet.part,
        text=tenet.text,
        said_on=tenet.said_on,
        tokens=tenet.tokens,
        shown=shown,
    )


def to_proposed(record: TenetRecord, identity: Identity) -> ProposedLine:
    """Return a proposed line with the lines of the identity that it contradicts."""
    return ProposedLine(
        line_id=record.tenet_id,
        section=record.part,
        text=record.words,
        created_at=record.at,
        origin=record.origin,
        trust=record.trust,
        session_id=record.session_id,
        position=record.position,
        conflicts_with=[to_line(one) for one in find_conflicts(identity, record.words or "")],
    )


def to_version(
    version: IdentityVersion, before: Sequence[UUID], lines: Mapping[UUID, TenetRecord]
) -> IdentityVersionInfo:
    """Return a version with the lines that it added and removed since the lines `before`."""
    diff = diff_tenets(before, version.standing)
    return IdentityVersionInfo(
        version=version.version,
        created_at=version.at,
        origin=version.origin,
        trust=version.trust,
        change=version.change,
        restored_version=version.restored,
        reason=version.reason,
        added=[to_line(lines[one]) for one in diff.added],
        removed=[to_line(lines[one]) for one in diff.removed],
    )


def to_accepted(proposal: TenetProposal) -> AcceptedLine:
    tenet, replaced = proposal
    text = f"{tenet.text}{format_replaced(one.text for one in replaced)}"
    return AcceptedLine(line_id=tenet.tenet_id, replaced=[one.tenet_id for one in replaced], text=text)


def format_identity(identity: IdentityOverview) -> str:
    """Format the lines of the identity by section, and the proposed lines."""
    lines = list(_format_lines(identity)) if identity.lines else [NO_LINES]
    if identity.proposals:
        many = pluralize(len(identity.proposals), "proposal")
        lines += [f"\n{many} pending: `newton identity accept ID` adds a line, `newton identity reject ID` does not"]
        lines += map(format_proposal, identity.proposals)
    return "\n".join(lines)


def _format_lines(identity: IdentityOverview) -> Iterator[str]:
    yield f"version {identity.version} · {identity.tokens} of {max(identity.max_tokens, 0):,} tokens"
    section = ""
    for line in identity.lines:
        if line.section != section:
            section = line.section
            yield f"\n{section}"
        said = f"  (said {line.said_on})" if line.said_on else ""
        yield f"  {short_id(line.line_id)}  {line.text}{said}{'' if line.shown else '  (does not fit)'}"
    if hidden := sum(not line.shown for line in identity.lines):
        many = pluralize(hidden, "line does", "lines do")
        yield f"\n{many} not fit: shorten or remove lines, or give a larger --max-tokens."


def format_proposal(line: ProposedLine) -> str:
    text = f"{line.text}{format_replaced(one.text for one in line.conflicts_with)}"
    source = f"({line.created_at:%Y-%m-%d}, {line.origin}, by {line.trust})"
    return f"{short_id(line.line_id)}  {line.section:<11}  {text}  {source}"


def format_version(version: IdentityVersionInfo) -> str:
    """Format a version: its number, time and change, and the lines added and removed."""
    change = f"rolled back to {version.restored_version}" if version.restored_version else version.change
    reason = f": {version.reason}" if version.reason else ""
    source = f"({version.trust}, {version.origin})"
    lines = [f"{version.version:>4}  {version.created_at:%Y-%m-%d %H:%M}  {change} {source}{reason}"]
    for sign, changed in (("-", version.removed), ("+", version.added)):
        lines += [f"      {sign} {one.section}: {one.text or ERASED_TEXT}" for one in changed]
    return "\n".join(lines)
