"""Which guardrails hold for an agent: the files', as a person has changed them, and nobody else."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

import asyncpg
import pytest

from newton.agent.services.guardrails import GuardrailService, load_file_guardrails
from newton.brain import guardrails
from newton.brain.drafts import DecisionDraft, TrackRecord
from newton.brain.guardrails import MAX_OWN, Guardrail, GuardrailRule
from newton.clock import ManualClock
from newton.db.pool import Database
from newton.errors import ConflictError, InputError, NotFoundError
from newton.memory import agents
from tests.support import NOON, agent_scope

FILES = load_file_guardrails(None)
OWN = GuardrailRule(
    name="enough-options", expression="size(alternatives) < 2", severity="warn", message="Look for another."
)
CHOICE = DecisionDraft(description="Move", confidence=0.9, at=NOON)


def guarding(
    db: Database, agent_id: UUID, *, origin: str = "cli", folder: Mapping[str, Guardrail] = FILES
) -> GuardrailService:
    return GuardrailService(
        file_guardrails=folder, scope=agent_scope(agent_id=agent_id, origin=origin, db=db, clock=ManualClock(NOON))
    )


async def names(own: GuardrailService) -> list[str]:
    async with own.scope.transaction() as tx:
        return [rule.name for rule in await guardrails.list_in_force(tx, own.file_guardrails, own.scope.agent_id)]


async def verdicts(own: GuardrailService) -> dict[str, str]:
    async with own.scope.transaction() as tx:
        return {r.name: r.verdict for r in await own.evaluate(tx, CHOICE, TrackRecord())}


async def test_files_hold_for_every_agent_and_additions_for_one(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    assert await names(own) == sorted(FILES)
    assert (await verdicts(own))["no-reason"] == "blocked"
    assert await names(guarding(db, agent, folder={})) == []
    # what a person adds holds for that agent alone
    own = guarding(db, agent)
    assert await own.add(OWN) == "added"
    assert await own.add(OWN) == "unchanged"
    assert (await verdicts(own))["enough-options"] == "warned"
    ben = guarding(db, await agents.get_or_create_agent(db, "ben", now=NOON))
    assert await names(ben) == sorted(FILES)
    listed = {known.name: known.source for known in await own.list_guardrails()}
    assert listed == {**dict.fromkeys(FILES, "file"), "enough-options": "own"}


async def test_ones_own_stands_in_the_place_of_a_file_until_it_is_restored(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    softer = GuardrailRule(name="no-reason", expression="size(reasons) == 0", severity="warn", message="Say why.")
    assert await own.add(softer) == "replaced"
    assert (await verdicts(own))["no-reason"] == "warned"
    assert await own.restore("no-reason")
    assert not await own.restore("no-reason")
    assert (await verdicts(own))["no-reason"] == "blocked"


async def test_one_that_ships_is_taken_out_of_force_and_put_back(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    await own.retire("no-reason")
    assert "no-reason" not in await verdicts(own)
    assert [known.name for known in await own.list_guardrails() if not known.is_active] == ["no-reason"]
    with pytest.raises(NotFoundError, match="no guardrail in force called 'no-reason'"):
        await own.retire("no-reason")
    assert await own.restore("no-reason")
    assert (await verdicts(own))["no-reason"] == "blocked"


async def test_ones_own_is_retired_and_may_be_added_again(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    await own.add(OWN)
    await own.retire(OWN.name)
    assert await names(own) == sorted(FILES)
    assert OWN.name not in [known.name for known in await own.list_guardrails()]
    assert await own.add(OWN) == "added"
    assert OWN.name in await names(own)


async def test_an_unknown_name_names_the_nearest(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    with pytest.raises(NotFoundError) as missing:
        await own.retire("no-raeson")
    assert missing.value.hint.startswith("Did you mean 'no-reason'? Known guardrails: critical-without-review, ")
    with pytest.raises(NotFoundError, match="No file defines a guardrail called 'enough-options'"):
        await own.restore("enough-options")


@pytest.mark.parametrize("origin", ["chat", "api", "mcp", "job", ""])
async def test_only_a_person_changes_a_guardrail(db: Database, agent: UUID, origin: str) -> None:
    own = guarding(db, agent, origin=origin)
    for change in (own.add(OWN), own.retire("no-reason"), own.restore("no-reason")):
        with pytest.raises(InputError, match="Only a person"):
            await change
    assert await names(own) == sorted(FILES)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (
            GuardrailRule(name="Big Name", expression="true", severity="warn", message="m"),
            "'Big Name' is not a valid guardrail name",
        ),
        (
            GuardrailRule(name="a" * 61, expression="true", severity="warn", message="m"),
            "is not a valid guardrail name",
        ),
        (GuardrailRule(name="typo", expression="sakes == ''", severity="warn", message="m"), "Did you mean 'stakes'?"),
        (
            GuardrailRule(name="huge", expression="1" + "+1" * 1_000_000, severity="warn", message="m"),
            "2,000,001 characters",
        ),
        (GuardrailRule(name="mute", expression="true", severity="warn", message=" "), "message"),
        (
            GuardrailRule(name="long", expression="true", severity="warn", message="m" * 501),
            "The message has 501 characters.",
        ),
    ],
)
async def test_what_cannot_be_a_guardrail_is_not_kept(
    db: Database, agent: UUID, rule: GuardrailRule, complaint: str
) -> None:
    own = guarding(db, agent)
    with pytest.raises(InputError) as refused:
        await own.add(rule)
    assert complaint in str(refused.value)
    assert await names(own) == sorted(FILES)


async def test_one_that_the_database_holds_and_nothing_can_judge_blocks(db: Database, agent: UUID) -> None:
    own = guarding(db, agent, folder={})
    ctx = guardrails.EditContext(agent_id=agent, now=NOON, origin="cli")
    async with db.transaction(agent) as tx:
        odd = GuardrailRule(name="odd", expression="weather == 'bad'", severity="warn", message="Wait.", source="own")
        await guardrails.add(tx, odd, {}, ctx=ctx)
    async with own.scope.transaction() as tx:
        (ruling,) = await own.evaluate(tx, CHOICE, TrackRecord())
    assert ruling.blocks
    assert ruling.message.startswith("The guardrail odd could not be evaluated: 'weather' is not a known variable.")


async def test_there_are_not_too_many_to_judge_by(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    for n in range(MAX_OWN):
        await own.add(GuardrailRule(name=f"n{n}", expression="true", severity="warn", message="m"))
    with pytest.raises(ConflictError, match="maximum of 100 guardrails"):
        await own.add(OWN)
    assert await own.add(GuardrailRule(name="n5", expression="false", severity="warn", message="m")) == "replaced"
    await own.retire("n5")
    assert await own.add(OWN) == "added"


async def test_two_people_at_once_are_two_changes(db: Database, agent: UUID) -> None:
    own = guarding(db, agent)
    changes = [
        own.add(GuardrailRule(name="same", expression=f"confidence < 0.{n}", severity="warn", message="m"))
        for n in range(4)
    ]
    assert sorted(await asyncio.gather(*changes)) == ["added", "replaced", "replaced", "replaced"]
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select version from brain.guardrails where agent_id = $1 order by version", agent)
    assert [row["version"] for row in rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "sql",
    [
        "update brain.guardrails set expression = 'false' where agent_id = $1",
        "delete from brain.guardrails where agent_id = $1",
    ],
)
async def test_a_change_once_made_is_never_changed(db: Database, agent: UUID, sql: str) -> None:
    await guarding(db, agent).add(OWN)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction(agent) as tx:
            await tx.execute(sql, agent)
