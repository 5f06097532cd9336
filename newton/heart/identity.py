"""The identity: tenets in versions that are only ever added. A person changes it; whoever else may only propose."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.opposing import stance
from newton.heart.tenets import NOBODY, Identity, Part, Tenet, gist, rendered
from newton.heart.wishes import Wish
from newton.ids import new_id
from newton.memory import hygiene
from newton.memory.lookup import FEWEST_LETTERS, short
from newton.memory.memory import OUTSIDE, Count, Teller, Trust
from newton.memory.representations import one_line

SQL = load("newton.heart", "identity.sql")

Change = Literal["added", "changed", "removed", "accepted", "rolled back", "erased"]
Proposed = Literal["PROPOSED", "ACCEPTED", "REJECTED"]

MOST_TENETS = 200
MOST_LINE_TOKENS = 100  # more than one in five of the layer's would be a page, not a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """Who changes the identity, and why if that was said."""

    ctx: Teller
    because: str | None = None

    @property
    def agent_id(self) -> UUID:
        return self.ctx.agent_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One change, and the tenets that stood after it, in order."""

    version: int
    at: datetime
    origin: str
    trust: Trust
    change: Change
    tenet_id: UUID | None
    restored: int | None
    because: str | None
    standing: Sequence[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A tenet as it was written, wherever that was. `state` is that of its proposal, if it was one; the session and the
    position are those of the line of dialogue it was heard in. Erased, it has no words."""

    tenet_id: UUID
    part: Part
    words: str | None
    tokens: int | None
    at: datetime
    origin: str
    trust: Trust
    session_id: UUID | None
    position: int | None
    state: Proposed | None
    gist: bytes | None


class Proposal(NamedTuple):
    """What waits for a person's yes, and the lines that stand and go against it: it would take their place."""

    tenet: Tenet
    instead_of: tuple[Tenet, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of dialogue by its place."""

    session_id: UUID
    position: int


async def read(tx: Tx, *, agent_id: UUID, version: int | None = None, moment: datetime | None = None) -> Identity:
    """The identity as it holds, as a version had it or as it was at a moment; what was erased since is not in it."""
    rows = await SQL["get_version"].all(tx, agent_id=agent_id, version=version, moment=moment)
    tenets = [
        Tenet(tenet_id=row["tenet_id"], part=row["part"], words=row["words"], tokens=row["tokens"])
        for row in rows
        if row["tenet_id"]
    ]
    return Identity(rows[0]["version"], tuple(tenets), frozenset(rows[0]["gone"])) if rows else NOBODY


async def history(tx: Tx, *, agent_id: UUID) -> list[Version]:
    """Every change, the first one first."""
    rows = await SQL["list_versions"].all(tx, agent_id=agent_id)
    return [Version(**row) for row in rows]


async def written(tx: Tx, *, agent_id: UUID) -> list[Written]:
    """Every tenet that was ever in the identity or proposed for it, the first one first."""
    return [Written(**row) for row in await SQL["list_tenets"].all(tx, agent_id=agent_id)]


async def wanted(tx: Tx, episode_id: UUID, *, agent_id: UUID) -> list[str]:
    """The words of what was proposed in the lines of an episode, and of what stands."""
    return [row["words"] for row in await SQL["list_requested_lines"].all(tx, agent_id=agent_id, memory_id=episode_id)]


async def add(tx: Tx, part: Part, words: str, *, hand: Hand, beside: bool = False) -> bool:
    """Adds a line to its part; False when it says so already. What waited for a yes with these words has it now.

    Raises InputError for words that are no line, and ConflictError when there are too many, or when one that stands
    goes against it, unless it is to stand `beside` that.
    """
    now = await _held(tx, hand)
    tenet = _tenet(part, words, hand.ctx.count_tokens)
    await SQL["resolve_proposal"].run(tx, agent_id=hand.agent_id, normalized_hash=gist(tenet.words), state="ACCEPTED")
    if _says(now, tenet):
        return False
    if not beside and (against := opposed(now, tenet.words)):
        raise ConflictError(f"This goes against what stands: {against[0].words}.", hint=_instead(against[0], tenet))
    _ensure_room(now)
    await _turn_down(tx, tenet, hand=hand)
    await _write(tx, tenet, ctx=hand.ctx)
    await _turn(tx, "added", tenet.tenet_id, [*_ids(now), tenet.tenet_id], hand=hand)
    return True


async def change(tx: Tx, given: str, words: str, *, part: Part | None, hand: Hand) -> bool:
    """Puts other words in the place of a line, perhaps in another part; False when they are the same."""
    now = await _held(tx, hand)
    before = _picked(given, now.tenets)
    tenet = _tenet(part or before.part, words, hand.ctx.count_tokens)
    if (tenet.part, tenet.words) == (before.part, before.words):
        return False
    await _write(tx, tenet, ctx=hand.ctx)
    after = [tenet.tenet_id if one == before.tenet_id else one for one in _ids(now)]
    await _turn(tx, "changed", tenet.tenet_id, after, hand=hand)
    return True


async def remove(tx: Tx, given: str, *, hand: Hand) -> Tenet:
    """Takes a line out; its words stay in the versions that had it."""
    now = await _held(tx, hand)
    tenet = _picked(given, now.tenets)
    await _turn(tx, "removed", tenet.tenet_id, [one for one in _ids(now) if one != tenet.tenet_id], hand=hand)
    return tenet


async def roll_back(tx: Tx, version: int, *, hand: Hand) -> bool:
    """Makes the identity what it was in an earlier version, but for what was erased; False when it is that already.

    Raises NotFoundError for a version that is not there.
    """
    now = await _held(tx, hand)
    if not 1 <= version <= now.version:
        known = f"The last one is {now.version}." if now.version else "Nobody has written anything yet."
        raise NotFoundError(f"There is no version {version} of the identity.", hint=known)
    then = await read(tx, agent_id=hand.agent_id, version=version)
    if _ids(then) == _ids(now):
        return False
    await _turn(tx, "rolled back", None, _ids(then), hand=hand, restored=version)
    return True


async def propose(tx: Tx, wishes: Sequence[Wish], *, spot: Spot | None, hand: Hand) -> list[Proposal]:
    """Has what does not stand already wait for a person's yes; returns what of it waits, with what it would take the
    place of. The same does not wait twice, in whatever words.

    Raises InputError for what a tool or the web said.
    """
    if hand.ctx.trust in OUTSIDE:
        raise InputError(
            f"What a {hand.ctx.trust} says cannot be proposed for the identity.", hint="A person or an agent may."
        )
    now = await _held(tx, hand)
    waiting = [_worded(one) for one in await _waiting(tx, hand)]
    heard: dict[UUID, Tenet] = {}
    for wish in wishes:
        if _alike(now.tenets, wish.words):
            continue
        tenet = _alike(waiting, wish.words)
        if tenet is None:
            tenet = _tenet(wish.part, wish.words, hand.ctx.count_tokens)
            waiting.append(tenet)
            await _write(tx, tenet, ctx=hand.ctx, spot=spot)
            await SQL["insert_proposal"].run(
                tx, agent_id=hand.agent_id, tenet_id=tenet.tenet_id, normalized_hash=gist(tenet.words)
            )
        heard[tenet.tenet_id] = tenet
    return [Proposal(tenet, opposed(now, tenet.words)) for tenet in heard.values()]


def is_line(wish: Wish, count: Count) -> bool:
    """Whether it could stand in an identity."""
    try:
        _tenet(wish.part, wish.words, count)
    except InputError:
        return False
    return True


async def accept(tx: Tx, given: str, *, hand: Hand) -> Proposal:
    """A person's yes: from now on it stands, in the place of what goes against it; what goes against it and waits for
    an answer has a no. Raises NotFoundError for what does not wait for one."""
    now = await _held(tx, hand)
    tenet = await _settled(tx, given, "ACCEPTED", hand=hand)
    await _turn_down(tx, tenet, hand=hand)
    against = opposed(now, tenet.words)
    if not _alike(now.tenets, tenet.words):
        gone = {one.tenet_id for one in against}
        after = [one for one in _ids(now) if one not in gone]
        _ensure_room(now._replace(tenets=tuple(one for one in now.tenets if one.tenet_id not in gone)))
        await _turn(tx, "accepted", tenet.tenet_id, [*after, tenet.tenet_id], hand=hand)
    return Proposal(tenet, against)


def opposed(now: Identity, words: str) -> tuple[Tenet, ...]:
    """The lines that stand and cannot be followed together with these words."""
    return tuple(tenet for tenet in now.tenets if stance(tenet.words, words) == "against")


async def reject(tx: Tx, given: str, *, hand: Hand) -> Tenet:
    """A person's no. Raises NotFoundError for what does not wait for an answer."""
    await SQL["lock_identity"].run(tx, agent_id=hand.agent_id)
    return await _settled(tx, given, "REJECTED", hand=hand)


async def erase(tx: Tx, given: str, *, hand: Hand) -> int:
    """Takes the words of a tenet away for good, wherever the same were written; returns how often. Each is a version of
    its own: that something was erased stays known.

    Raises NotFoundError.
    """
    await SQL["lock_identity"].run(tx, agent_id=hand.agent_id)
    every = [_worded(one) for one in await written(tx, agent_id=hand.agent_id) if one.words]
    same = gist(_picked(given, every).words)
    gone = [tenet.tenet_id for tenet in every if gist(tenet.words) == same]
    for tenet_id in gone:
        now = await read(tx, agent_id=hand.agent_id)
        await _turn(tx, "erased", tenet_id, [one for one in _ids(now) if one != tenet_id], hand=hand)
    await SQL["erase_tenets"].run(tx, agent_id=hand.agent_id)
    return len(gone)


async def _held(tx: Tx, hand: Hand) -> Identity:
    """The identity as it holds; until the end of the unit of work nobody else changes it."""
    await SQL["lock_identity"].run(tx, agent_id=hand.agent_id)
    return await read(tx, agent_id=hand.agent_id)


async def _waiting(tx: Tx, hand: Hand) -> list[Written]:
    return [one for one in await written(tx, agent_id=hand.agent_id) if one.state == "PROPOSED"]


async def _settled(tx: Tx, given: str, state: Proposed, *, hand: Hand) -> Tenet:
    tenet = _picked(given, [_worded(one) for one in await _waiting(tx, hand)], what="proposal")
    await SQL["resolve_proposal"].run(tx, agent_id=hand.agent_id, normalized_hash=gist(tenet.words), state=state)
    return tenet


async def _turn_down(tx: Tx, chosen: Tenet, *, hand: Hand) -> None:
    """What a person wants now is not what they wanted before it."""
    for one in map(_worded, await _waiting(tx, hand)):
        if stance(one.words, chosen.words) == "against":
            await SQL["resolve_proposal"].run(
                tx, agent_id=hand.agent_id, normalized_hash=gist(one.words), state="REJECTED"
            )


async def _write(tx: Tx, tenet: Tenet, *, ctx: Teller, spot: Spot | None = None) -> None:
    await SQL["insert_tenet"].run(
        tx,
        agent_id=ctx.agent_id,
        tenet_id=tenet.tenet_id,
        section=tenet.part,
        text=tenet.words,
        tokens=tenet.tokens,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        session_id=spot and spot.session_id,
        position=None if spot is None else spot.position,
    )


async def _turn(
    tx: Tx, change: Change, tenet_id: UUID | None, after: Sequence[UUID], *, hand: Hand, restored: int | None = None
) -> None:
    """Writes the next version."""
    await SQL["insert_version"].run(
        tx,
        agent_id=hand.agent_id,
        created_at=hand.ctx.now,
        origin=hand.ctx.origin,
        trust=hand.ctx.trust,
        change=change,
        tenet_id=tenet_id,
        restored_version=restored,
        reason=hand.because,
        active_tenets=list(after),
    )


def _tenet(part: Part, words: str, count: Count) -> Tenet:
    said = one_line(hygiene.name(words, what="line"))
    tokens = count(rendered(part, said))
    if tokens > MOST_LINE_TOKENS:
        raise InputError(
            f"The line has {tokens} tokens; {MOST_LINE_TOKENS} is the most.", hint="Say it in several lines."
        )
    return Tenet(tenet_id=new_id(), part=part, words=said, tokens=tokens)


def _worded(one: Written) -> Tenet:
    assert one.words is not None and one.tokens is not None
    return Tenet(tenet_id=one.tenet_id, part=one.part, words=one.words, tokens=one.tokens)


def _picked(given: str, among: Sequence[Tenet], *, what: str = "line of the identity") -> Tenet:
    """The one meant by its id or the end of it. Raises InputError, NotFoundError and ConflictError."""
    letters = given.strip().lower().replace("-", "")
    if len(letters) < FEWEST_LETTERS:
        raise InputError(
            f"{given!r} is no id of a {what}.", hint=f"Give the whole id or at least its last {FEWEST_LETTERS} letters."
        )
    found = [tenet for tenet in among if tenet.tenet_id.hex.endswith(letters)]
    if not found:
        command = "newton identity proposals" if what == "proposal" else "newton identity"
        raise NotFoundError(f"There is no {what} {given}.", hint=f"`{command}` shows their ids.")
    if len(found) > 1:
        raise ConflictError(f"Several end in {given}.", hint="Give more letters of the id.")
    return found[0]


def _says(now: Identity, tenet: Tenet) -> bool:
    return any(one.part == tenet.part and gist(one.words) == gist(tenet.words) for one in now.tenets)


def _alike(tenets: Sequence[Tenet], words: str) -> Tenet | None:
    return next((tenet for tenet in tenets if stance(tenet.words, words) == "same"), None)


def _instead(standing: Tenet, tenet: Tenet) -> str:
    command = f'newton identity change {short(standing.tenet_id)} "{tenet.words}"'
    return f"`{command}` puts it in its place; --beside keeps both."


def _ids(of: Identity) -> list[UUID]:
    return [tenet.tenet_id for tenet in of.tenets]


def _ensure_room(now: Identity) -> None:
    if len(now.tenets) >= MOST_TENETS:
        raise ConflictError(f"The identity has {MOST_TENETS} lines.", hint="`newton identity remove` one first.")
