"""Store of an agent's identity: its tenets (lines such as instructions and values) in append-only versions.

Only a person changes the identity; an agent may propose changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import (
    EMPTY_IDENTITY,
    Identity,
    IdentityPart,
    IdentityTenet,
    compare_lines,
    fingerprint,
    make_tenet,
)
from newton.memory.forgetting import forget_in_projects
from newton.memory.lookup import MIN_ID_DIGITS, short_id
from newton.memory.memory import UNTRUSTED_TIERS, Trust, WriteContext

SQL = load("newton.heart.identity", "identity_store.sql")

IdentityChange = Literal["added", "changed", "removed", "accepted", "rolled back", "erased"]
ProposalState = Literal["PROPOSED", "ACCEPTED", "REJECTED"]

MAX_TENETS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEdit:
    """The author, time and agent of an identity change, and optionally the reason for it."""

    ctx: WriteContext
    reason: str | None = None

    @property
    def agent_id(self) -> UUID:
        return self.ctx.agent_id


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityVersion:
    """One change of the identity. `standing` lists the ids of the lines (tenets) in force after it, in order.

    `restored` is the version that a roll-back restored; None for other changes.
    """

    version: int
    at: datetime
    origin: str
    trust: Trust
    change: IdentityChange
    tenet_id: UUID | None
    restored: int | None
    reason: str | None
    standing: Sequence[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenetRecord:
    """A stored line of the identity (tenet). `state` is that of a proposal; None for a line that was not proposed.

    An erased line has no text. `gist` is the hash of a proposed text without case and punctuation.
    """

    tenet_id: UUID
    part: IdentityPart
    words: str | None
    tokens: int | None
    at: datetime
    origin: str
    trust: Trust
    session_id: UUID | None
    position: int | None
    state: ProposalState | None
    gist: bytes | None


class TenetProposal(NamedTuple):
    """A proposed line of the identity (tenet), and the active lines that it would replace, `instead_of`."""

    tenet: IdentityTenet
    instead_of: tuple[IdentityTenet, ...]


@dataclass(frozen=True, slots=True)
class MessageRef:
    """The session and the position of a message."""

    session_id: UUID
    position: int


async def read_identity(
    tx: Tx, *, agent_id: UUID, version: int | None = None, moment: datetime | None = None
) -> Identity:
    """Return the current identity, or that of a version or a moment, without erased lines; an empty one if none is."""
    rows = await SQL["get_version"].fetch_all(tx, agent_id=agent_id, version=version, moment=moment)
    tenets = tuple(
        IdentityTenet(row["tenet_id"], row["part"], row["words"], row["tokens"], row["said_on"])
        for row in rows
        if row["tenet_id"]
    )
    return Identity(rows[0]["version"], tenets, frozenset(rows[0]["gone"])) if rows else EMPTY_IDENTITY


async def list_versions(tx: Tx, *, agent_id: UUID) -> list[IdentityVersion]:
    """Return every version of the identity, oldest first."""
    rows = await SQL["list_versions"].fetch_all(tx, agent_id=agent_id)
    return [IdentityVersion(**row) for row in rows]


async def list_tenets(tx: Tx, *, agent_id: UUID) -> list[TenetRecord]:
    """Return every line of the identity (tenet) that was ever active or proposed, oldest first."""
    return [TenetRecord(**row) for row in await SQL["list_tenets"].fetch_all(tx, agent_id=agent_id)]


async def list_requested_lines(tx: Tx, session_range: tuple[UUID, int, int] | None, *, agent_id: UUID) -> list[str]:
    """Return the texts of the active lines, and of those from messages of a range (session, first, last) if given."""
    session_id, first, last = session_range or (None, None, None)
    rows = await SQL["list_requested_lines"].fetch_all(
        tx, agent_id=agent_id, session_id=session_id, first=first, last=last
    )
    return [row["words"] for row in rows]


async def add(tx: Tx, part: IdentityPart, text: str, *, edit: IdentityEdit, keep_conflicting: bool = False) -> bool:
    """Add a line to the identity; return False if the identity already has it.

    A waiting proposal of the same line is accepted, and proposals that contradict it are rejected. Raises InputError
    for an invalid line, and ConflictError if the identity is full or, without `keep_conflicting`, the line contradicts
    an active one.
    """
    current = await lock_and_read(tx, edit)
    tenet = make_tenet(part, text, edit.ctx.count_tokens)
    await resolve_proposals(tx, tenet, "ACCEPTED", edit=edit)
    if any(one.part == part and fingerprint(one.text) == fingerprint(tenet.text) for one in current.tenets):
        return False
    if not keep_conflicting and (conflicting := find_conflicts(current, tenet.text)):
        command = f'newton identity change {short_id(conflicting[0].tenet_id)} "{tenet.text}"'
        hint = f"`{command}` replaces the active line; `newton identity add --allow-conflict` keeps both."
        raise ConflictError(f"The line contradicts an active one: {conflicting[0].text}.", hint=hint)
    ensure_below_limit(current)
    await reject_conflicting(tx, tenet, edit=edit)
    await insert_tenet(tx, tenet, ctx=edit.ctx)
    await insert_version(tx, "added", tenet.tenet_id, [*tenet_ids(current), tenet.tenet_id], edit=edit)
    return True


async def change(tx: Tx, tenet_ref: str, text: str, *, part: IdentityPart | None, edit: IdentityEdit) -> bool:
    """Change the text, and optionally the part, of the line with this id; return False if nothing changes.

    `tenet_ref` is the id or its end. Raises InputError, NotFoundError or ConflictError if it does not name one line.
    """
    current = await lock_and_read(tx, edit)
    before = _resolve_tenet(tenet_ref, current.tenets)
    tenet = make_tenet(part or before.part, text, edit.ctx.count_tokens)
    if (tenet.part, tenet.text) == (before.part, before.text):
        return False
    await insert_tenet(tx, tenet, ctx=edit.ctx)
    after = [tenet.tenet_id if one == before.tenet_id else one for one in tenet_ids(current)]
    await insert_version(tx, "changed", tenet.tenet_id, after, edit=edit)
    return True


async def remove(tx: Tx, tenet_ref: str, *, edit: IdentityEdit) -> IdentityTenet:
    """Remove the line with this id or end of an id, and return it. Earlier versions of the identity keep it.

    Raises InputError, NotFoundError or ConflictError if `tenet_ref` does not name one line.
    """
    current = await lock_and_read(tx, edit)
    tenet = _resolve_tenet(tenet_ref, current.tenets)
    after = [one for one in tenet_ids(current) if one != tenet.tenet_id]
    await insert_version(tx, "removed", tenet.tenet_id, after, edit=edit)
    return tenet


async def roll_back(tx: Tx, version: int, *, edit: IdentityEdit) -> bool:
    """Restore an earlier version of the identity except for erased lines; return False if nothing changes.

    Raises NotFoundError if there is no such version.
    """
    current = await lock_and_read(tx, edit)
    if not 1 <= version <= current.version:
        hint = f"The latest version is {current.version}." if current.version else "The identity has no versions yet."
        raise NotFoundError(f"The identity has no version {version}.", hint=hint)
    earlier = await read_identity(tx, agent_id=edit.agent_id, version=version)
    if tenet_ids(earlier) == tenet_ids(current):
        return False
    await insert_version(tx, "rolled back", None, tenet_ids(earlier), edit=edit, restored=version)
    return True


async def propose(
    tx: Tx, instructions: Sequence[StandingInstruction], *, message_ref: MessageRef | None, edit: IdentityEdit
) -> list[TenetProposal]:
    """Store proposals to add the instructions of a message; return each with the lines that it would replace.

    An instruction that is active already is skipped, and one that waits for a decision is returned but not stored
    again. Raises InputError if the trust of the edit is `tool` or `web`.
    """
    if edit.ctx.trust in UNTRUSTED_TIERS:
        raise InputError(
            f"Text with trust {edit.ctx.trust!r} cannot propose an identity change.",
            hint="Let a person or the agent propose the change.",
        )
    current = await lock_and_read(tx, edit)
    pending = await _list_pending(tx, edit)
    proposals: dict[UUID, IdentityTenet] = {}
    for part, text in instructions:
        if find_same(current.tenets, text):
            continue
        tenet = find_same(pending, text)
        if tenet is None:
            tenet = make_tenet(part, text, edit.ctx.count_tokens)
            pending.append(tenet)
            await insert_tenet(tx, tenet, ctx=edit.ctx, message_ref=message_ref)
            await SQL["insert_proposal"].execute(
                tx, agent_id=edit.agent_id, tenet_id=tenet.tenet_id, normalized_hash=fingerprint(tenet.text)
            )
        proposals[tenet.tenet_id] = tenet
    return [TenetProposal(tenet, find_conflicts(current, tenet.text)) for tenet in proposals.values()]


async def accept(tx: Tx, tenet_ref: str, *, edit: IdentityEdit) -> TenetProposal:
    """Accept a proposal in place of the identity lines that contradict it; return it with those lines.

    Other proposals that contradict it are rejected. Raises NotFoundError if no proposal with this id waits.
    """
    current = await lock_and_read(tx, edit)
    tenet = await _resolve_proposal(tx, tenet_ref, "ACCEPTED", edit=edit)
    await reject_conflicting(tx, tenet, edit=edit)
    conflicting = find_conflicts(current, tenet.text)
    if not find_same(current.tenets, tenet.text):
        remaining = current._replace(tenets=tuple(one for one in current.tenets if one not in conflicting))
        ensure_below_limit(remaining)
        await insert_version(tx, "accepted", tenet.tenet_id, [*tenet_ids(remaining), tenet.tenet_id], edit=edit)
    return TenetProposal(tenet, conflicting)


def find_conflicts(identity: Identity, text: str) -> tuple[IdentityTenet, ...]:
    """Return the active lines of the identity that contradict a text."""
    return tuple(tenet for tenet in identity.tenets if compare_lines(tenet.text, text) == "against")


async def reject(tx: Tx, tenet_ref: str, *, edit: IdentityEdit) -> IdentityTenet:
    """Reject a proposal and return it. Raises NotFoundError if no proposal with this id waits."""
    await SQL["lock_identity"].execute(tx, agent_id=edit.agent_id)
    return await _resolve_proposal(tx, tenet_ref, "REJECTED", edit=edit)


async def erase(tx: Tx, tenet_ref: str, *, edit: IdentityEdit) -> int:
    """Erase the text of an identity line (tenet) and of all lines with an equal text; return how many were erased.

    Each erasure adds a version that records it. Raises NotFoundError if no line has this id.
    """
    await SQL["lock_identity"].execute(tx, agent_id=edit.agent_id)
    tenets = [_to_tenet(one) for one in await list_tenets(tx, agent_id=edit.agent_id) if one.words]
    text_hash = fingerprint(_resolve_tenet(tenet_ref, tenets).text)
    equal_ids = [tenet.tenet_id for tenet in tenets if fingerprint(tenet.text) == text_hash]
    for tenet_id in equal_ids:
        current = await read_identity(tx, agent_id=edit.agent_id)
        after = [one for one in tenet_ids(current) if one != tenet_id]
        await insert_version(tx, "erased", tenet_id, after, edit=edit)
    await SQL["erase_tenets"].execute(tx, agent_id=edit.agent_id)
    await forget_in_projects(tx, equal_ids, agent_id=edit.agent_id)
    return len(equal_ids)


async def lock_and_read(tx: Tx, edit: IdentityEdit) -> Identity:
    """Lock the identity until the transaction ends, and return it."""
    await SQL["lock_identity"].execute(tx, agent_id=edit.agent_id)
    return await read_identity(tx, agent_id=edit.agent_id)


async def _list_pending(tx: Tx, edit: IdentityEdit) -> list[IdentityTenet]:
    return [_to_tenet(one) for one in await list_tenets(tx, agent_id=edit.agent_id) if one.state == "PROPOSED"]


async def _resolve_proposal(tx: Tx, tenet_ref: str, state: ProposalState, *, edit: IdentityEdit) -> IdentityTenet:
    tenet = _resolve_tenet(tenet_ref, await _list_pending(tx, edit), what="proposal")
    await resolve_proposals(tx, tenet, state, edit=edit)
    return tenet


async def resolve_proposals(tx: Tx, tenet: IdentityTenet, state: ProposalState, *, edit: IdentityEdit) -> None:
    """Accept or reject all proposed identity lines that wait for a decision and have the text of `tenet`."""
    text_hash = fingerprint(tenet.text)
    await SQL["resolve_proposal"].execute(tx, agent_id=edit.agent_id, normalized_hash=text_hash, state=state)


async def reject_conflicting(tx: Tx, accepted: IdentityTenet, *, edit: IdentityEdit) -> None:
    """Reject the waiting proposals that contradict an accepted line."""
    for proposal in await _list_pending(tx, edit):
        if compare_lines(proposal.text, accepted.text) == "against":
            await resolve_proposals(tx, proposal, "REJECTED", edit=edit)


async def insert_tenet(
    tx: Tx, tenet: IdentityTenet, *, ctx: WriteContext, message_ref: MessageRef | None = None
) -> None:
    """Store a line of the identity, with the message that stated it. It is in force once a version lists it."""
    await SQL["insert_tenet"].execute(
        tx,
        agent_id=ctx.agent_id,
        tenet_id=tenet.tenet_id,
        section=tenet.part,
        text=tenet.text,
        tokens=tenet.tokens,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        session_id=message_ref and message_ref.session_id,
        position=message_ref and message_ref.position,
    )


async def insert_version(
    tx: Tx,
    change: IdentityChange,
    tenet_id: UUID | None,
    tenet_ids: Sequence[UUID],
    *,
    edit: IdentityEdit,
    restored: int | None = None,
) -> None:
    """Store a version with the lines `tenet_ids`. `tenet_id` is the changed line, `restored` the restored version."""
    await SQL["insert_version"].execute(
        tx,
        agent_id=edit.agent_id,
        created_at=edit.ctx.now,
        origin=edit.ctx.origin,
        trust=edit.ctx.trust,
        change=change,
        tenet_id=tenet_id,
        restored_version=restored,
        reason=edit.reason,
        active_tenets=list(tenet_ids),
    )


def _to_tenet(record: TenetRecord) -> IdentityTenet:
    assert record.words is not None and record.tokens is not None
    return IdentityTenet(record.tenet_id, record.part, record.words, record.tokens)


def _resolve_tenet(
    tenet_ref: str, candidates: Sequence[IdentityTenet], *, what: str = "line of the identity"
) -> IdentityTenet:
    """Return the line whose id is or ends in `tenet_ref`. `what` names it in errors.

    Raises InputError if it is too short, NotFoundError if no id matches, and ConflictError if several do.
    """
    suffix = tenet_ref.strip().lower().replace("-", "")
    if len(suffix) < MIN_ID_DIGITS:
        hint = f"Give the whole id or at least its last {MIN_ID_DIGITS} characters."
        raise InputError(f"{tenet_ref!r} is not the id of a {what}.", hint=hint)
    found = [tenet for tenet in candidates if tenet.tenet_id.hex.endswith(suffix)]
    if not found:
        command = "newton identity proposals" if what == "proposal" else "newton identity"
        raise NotFoundError(f"There is no {what} {tenet_ref}.", hint=f"`{command}` shows the ids.")
    if len(found) > 1:
        raise ConflictError(f"Several ids end in {tenet_ref}.", hint="Give more characters of the id.")
    return found[0]


def find_same(tenets: Sequence[IdentityTenet], text: str) -> IdentityTenet | None:
    """Return the first identity line that says the same as the text; None if none does."""
    return next((tenet for tenet in tenets if compare_lines(tenet.text, text) == "same"), None)


def tenet_ids(identity: Identity) -> list[UUID]:
    return [tenet.tenet_id for tenet in identity.tenets]


def ensure_below_limit(identity: Identity) -> None:
    """Raise ConflictError if the identity already has the maximum number of lines."""
    if len(identity.tenets) >= MAX_TENETS:
        raise ConflictError(
            f"The identity already has the maximum of {MAX_TENETS} lines.",
            hint="Remove a line with `newton identity remove`.",
        )
