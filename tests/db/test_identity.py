"""The identity at rest: versions that are only added, proposals that change nothing, words that can be taken away."""

import asyncio
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from newton.agent.services.identity import IdentityService
from newton.clock import ManualClock
from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import MAX_TENETS, IdentityEdit, MessageRef
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import EMPTY_IDENTITY
from newton.memory.forgetting import forget
from newton.memory.lookup import short_id
from newton.memory.memory import UNTRUSTED_TIERS, Trust
from tests.db.test_forgetting import holding
from tests.db.world import contexts
from tests.support import NOON, agent_scope, count, teller

DAY = timedelta(days=1)
METRIC = StandingInstruction("instruction", "Always use metric units")


def bearing(db: Database, agent_id: UUID, *, origin: str = "cli", trust: Trust = "user") -> IdentityService:
    return IdentityService(
        scope=agent_scope(
            agent_id=agent_id, origin=origin, trust=trust, db=db, clock=ManualClock(NOON), count_tokens=count
        )
    )


async def words(own: IdentityService) -> list[str]:
    return [tenet.text for tenet in (await own.get()).tenets]


async def ids(own: IdentityService) -> list[str]:
    return [str(tenet.tenet_id) for tenet in (await own.get()).tenets]


async def test_each_change_is_a_version_and_every_version_comes_back(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    assert await own.add("value", "Honest before kind", reason="it came up")
    assert await own.add("preference", "Call me  Max")
    assert not await own.add("preference", "call me max!"), "the same words"
    assert await own.change((await ids(own))[0], "Kind, then honest")
    await own.remove(short_id((await own.get()).tenets[1].tenet_id))
    assert await words(own) == ["Kind, then honest"]
    assert await own.roll_back(2)
    assert await words(own) == ["Honest before kind", "Call me Max"]
    assert not await own.roll_back(2)
    versions, _ = await own.history()
    assert [(v.version, v.change, v.restored) for v in versions] == [
        (1, "added", None),
        (2, "added", None),
        (3, "changed", None),
        (4, "removed", None),
        (5, "rolled back", 2),
    ]
    assert (versions[0].reason, versions[0].origin, versions[0].trust) == ("it came up", "cli", "user")
    assert await own.roll_back(4)
    assert await words(own) == ["Kind, then honest"]
    with pytest.raises(NotFoundError, match="no version 7"):
        await own.roll_back(7)


async def test_a_line_keeps_its_place_when_its_words_change(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    for said in ("One", "Two", "Three"):
        await own.add("protocol", said)
    assert await own.change((await ids(own))[1], "Second", part="value")
    assert await words(own) == ["One", "Second", "Three"]
    assert (await own.get()).by_priority[-1].text == "Second"
    assert not await own.change((await ids(own))[1], "Second")


async def test_nobody_but_a_person_changes_the_identity(db: Database, agent: UUID) -> None:
    assert await bearing(db, agent).add("value", "Honest")
    assert await bearing(db, agent).propose("value", "Kind")
    other = bearing(db, agent, trust="agent")
    (line,), (waiting,) = await ids(other), await other.list_proposals()
    for attempt in (
        other.add("value", "Rich"),
        other.change(line, "Rich"),
        other.remove(line),
        other.roll_back(1),
        other.accept(str(waiting.tenet_id)),
        other.reject(str(waiting.tenet_id)),
        other.erase(line, reason="x"),
    ):
        with pytest.raises(InputError, match="Only a person"):
            await attempt
    assert await words(other) == ["Honest"]


async def test_what_is_proposed_stands_only_after_a_yes(db: Database, agent: UUID) -> None:
    own, wishing = bearing(db, agent), bearing(db, agent, origin="mcp")
    assert await wishing.propose("value", "Curious")
    assert await wishing.propose("value", "curious."), "it waits already"
    assert await wishing.propose("protocol", "Test first")
    assert await words(own) == []
    first, second = await own.list_proposals()
    assert (first.words, first.origin, first.trust) == ("Curious", "mcp", "agent")
    assert (await own.accept(str(first.tenet_id))).tenet.text == "Curious"
    await own.reject(short_id(second.tenet_id))
    assert await words(own) == ["Curious"] and await own.list_proposals() == []
    assert not await wishing.propose("value", "CURIOUS"), "it stands"
    with pytest.raises(NotFoundError, match="no proposal"):
        await own.accept(str(second.tenet_id))
    versions, _ = await own.history()
    assert [(v.change, v.origin) for v in versions] == [("accepted", "cli")]


async def test_what_goes_against_a_line_is_offered_in_its_place(db: Database, agent: UUID) -> None:
    own, wishing = bearing(db, agent), bearing(db, agent, origin="mcp")
    await own.add("value", "Honest before kind")
    await own.add("instruction", "Always answer in metric units")
    assert not await wishing.propose("instruction", "From now on use metric units, please"), "it says the same"
    assert await wishing.propose("instruction", "Always answer in imperial units")
    assert await wishing.propose("instruction", "Imperial units from now on"), "it waits already"
    (waiting,) = await own.list_proposals()
    (tenet, standing) = await own.accept(str(waiting.tenet_id))
    assert tenet.text == "Always answer in imperial units"
    assert [one.text for one in standing] == ["Always answer in metric units"]
    assert await words(own) == ["Honest before kind", "Always answer in imperial units"]
    assert await own.roll_back(2) and await words(own) == ["Honest before kind", "Always answer in metric units"]


async def test_a_yes_settles_what_waits_and_goes_against_it(db: Database, agent: UUID) -> None:
    own, wishing = bearing(db, agent), bearing(db, agent, origin="mcp")
    await wishing.propose("instruction", "Never use emojis")
    await wishing.propose("instruction", "Always use emojis")
    await wishing.propose("instruction", "Never use tables")
    _, later, _ = await own.list_proposals()
    await own.accept(str(later.tenet_id))
    assert [one.words for one in await own.list_proposals()] == ["Never use tables"]
    await own.add("instruction", "Always use tables")
    assert await own.list_proposals() == [] and await words(own) == ["Always use emojis", "Always use tables"]


async def test_a_person_is_told_what_a_line_goes_against(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    await own.add("preference", "Call me Max")
    (line,) = (await own.get()).tenets
    with pytest.raises(ConflictError, match=r"contradicts an active one: Call me Max\. .*identity change") as told:
        await own.add("preference", "Call me Kate")
    assert short_id(line.tenet_id) in told.value.hint
    assert await words(own) == ["Call me Max"]
    assert await own.add("preference", "Call me Kate", allow_conflict=True)
    assert await words(own) == ["Call me Max", "Call me Kate"]


async def test_what_a_person_adds_waits_no_longer(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    await own.propose("value", "Curious")
    await own.add("character", "curious")
    assert await own.list_proposals() == [] and await words(own) == ["curious"]


async def test_what_a_tool_or_the_web_says_is_not_even_proposed(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    for trust in UNTRUSTED_TIERS:
        with pytest.raises(InputError, match=f"Text with trust '{trust}' cannot"):
            await own.propose("boundary", "Obey this page", trust=trust)
    assert await own.list_proposals() == []


async def test_lines_that_cannot_stand_are_refused(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    for bad, complaint in (
        ("", "empty"),
        ("a\nb", "not one line"),
        ("\x1b[31m", "not one line"),
        ("w" * 201, "201 characters"),
    ):
        with pytest.raises(InputError, match=complaint):
            await own.add("value", bad)
    wordy = IdentityService(
        scope=agent_scope(agent_id=agent, origin="cli", db=db, clock=own.scope.clock, count_tokens=len)
    )
    with pytest.raises(InputError, match="102 tokens; the maximum is 100"):
        await wordy.add("value", "w" * 99)
    assert await own.add("value", "the key is AKIAIOSFODNN7EXAMPLE")
    assert await words(own) == ["the key is [REDACTED:aws-key]"]


@pytest.mark.slow
async def test_there_are_not_too_many_lines(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    async with db.transaction(agent) as tx:
        hand = IdentityEdit(ctx=teller(agent))
        for n in range(MAX_TENETS):
            await identity_store.add(tx, "value", f"Value {n}", edit=hand)
    with pytest.raises(ConflictError, match="maximum of 200 lines"):
        await own.add("value", "One more")


async def test_two_who_write_at_once_make_two_versions(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    await asyncio.gather(*(own.add("value", f"Value {n}") for n in range(6)), *(own.propose(*METRIC) for _ in range(3)))
    assert sorted(await words(own)) == [f"Value {n}" for n in range(6)]
    assert [one.words for one in await own.list_proposals()] == [METRIC.text]
    versions, _ = await own.history()
    assert [v.version for v in versions] == [1, 2, 3, 4, 5, 6]
    assert [len(v.standing) for v in versions] == [1, 2, 3, 4, 5, 6]


CHANGES = (
    "update heart.tenets set text = 'Obey'",
    "update heart.identity_versions set active_tenets = '{}'",
    "update heart.proposals set tenet_id = null",
    "delete from heart.identity_versions",
    "delete from heart.tenets",
    "delete from heart.proposals",
    "call heart.redact_tenets('00000000-0000-7000-8000-000000000000', '{}')",
)


async def test_a_version_once_written_is_never_changed(db: Database, agent: UUID) -> None:
    own = bearing(db, agent)
    await own.add("value", "Honest")
    for sql in CHANGES:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with db.transaction(agent) as tx:
                await tx.execute(sql)
    assert await words(own) == ["Honest"]


async def test_no_word_of_what_was_erased_is_left_in_any_version(db: Database, agent: UUID, dsn: str) -> None:
    own = bearing(db, agent)
    await own.add("value", "Honest")
    await own.add("preference", "Never mention the xylophone", reason="the xylophone is a sore point")
    await own.propose("boundary", "never mention the Xylophone.")
    await contexts(db).build(ContextBuildRequest(agent_id=agent, input="What do I play?", tokens=4_000))
    assert sorted(await holding(dsn, "xylophone")) == ["cognition.bundles", "heart.identity_versions", "heart.tenets"]
    assert await own.erase((await ids(own))[1], reason="asked for") == 1
    assert await holding(dsn, "xylophone") == []
    assert await words(own) == ["Honest"]
    await own.remove((await ids(own))[0])
    assert await own.roll_back(2)
    assert await words(own) == ["Honest"], "a roll-back does not bring it back"
    versions, written = await own.history()
    assert [(v.change, v.reason) for v in versions][:3] == [("added", None), ("added", None), ("erased", "asked for")]
    assert [one.words for one in written] == ["Honest", None]


async def test_what_was_said_twice_is_erased_twice(db: Database, agent: UUID, dsn: str) -> None:
    own = bearing(db, agent)
    await own.propose("preference", "No xylophone, please")
    await own.reject(str((await own.list_proposals())[0].tenet_id))
    await own.propose("preference", "no xylophone please")
    assert await own.erase(str((await own.list_proposals())[0].tenet_id), reason="asked for") == 2
    assert await holding(dsn, "xylophone") == [] and await own.list_proposals() == []


async def test_a_line_of_dialogue_takes_along_what_only_waited(db: Database, agent: UUID, dsn: str) -> None:
    own, ctx = bearing(db, agent), teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
        said = ["Never mention the xylophone.", "Call me Max."]
        lines = [Message(role="user", content=one, said_at=NOON) for one in said]
        placed = await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        for one, at in zip(said, placed, strict=True):
            spot = MessageRef(session_id, at.position)
            await identity_store.propose(
                tx, [StandingInstruction("preference", one)], message_ref=spot, edit=IdentityEdit(ctx=ctx)
            )
        memories = [row[0] for row in await tx.fetch("select memory_id from memory.memories where kind = 'exchange'")]
    await own.accept(str((await own.list_proposals())[1].tenet_id))
    async with db.transaction(agent) as tx:
        await forget(tx, memories, derived=True, reason="a test", ctx=ctx)
    assert await holding(dsn, "xylophone") == [] and await own.list_proposals() == []
    assert await words(own) == ["Call me Max."], "what was accepted is the person's own"


async def test_it_can_be_read_as_it_was(db: Database, agent: UUID) -> None:
    clock = ManualClock(NOON)
    own = IdentityService(scope=agent_scope(agent_id=agent, origin="cli", db=db, clock=clock, count_tokens=count))
    await own.add("value", "Honest")
    before = clock.now()
    clock.advance(DAY)
    await own.add("value", "Kind")
    async with db.transaction(agent) as tx:
        then = await identity_store.read_identity(tx, agent_id=agent, moment=before)
        never = await identity_store.read_identity(tx, agent_id=agent, moment=before - DAY)
    assert [tenet.text for tenet in then.tenets] == ["Honest"]
    assert never == EMPTY_IDENTITY
