"""A person confirms a fact while a model ends it: whichever commits first, no fact that a person confirmed is ended.

Planted and seen to fail: without `lock_targets` in `rule_on`, the model rules on the fact as it was before the person's
confirmation, and ends it after that.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from newton.agent.services.memories import FactDraft
from newton.db.pool import Database, Tx
from newton.errors import NewtonError
from newton.heart.facts.fact_edits import merge_duplicates
from newton.heart.facts.fact_store import NewFact, add_facts
from newton.heart.lifecycle.engine import lock_attributes
from newton.operations.caller import OperationCaller
from newton.runtime.wiring import AgentServices
from tests.cluster import count_lock_waits
from tests.conformance.test_authority import run
from tests.support import until
from tests.system.served import served

FACT, NEWER = "Dora's office is in Graz.", "Dora's office is in Linz."
ENDS: Mapping[str, Mapping[str, Any]] = {
    "retract": {},
    "forget": {},
    "supersede": {"content": NEWER},
    "settle_conflict": {"keep": "newer"},
}


@pytest_asyncio.fixture
async def newton(db: Database, tmp_path: Path) -> AsyncGenerator[AgentServices]:
    async with served(db, tmp_path) as api:
        await api.token("ana")
        yield await api.app.state.agents.get("ana")


@pytest.fixture
async def onlooker(dsn: str) -> AsyncGenerator[Tx]:
    """A connection that sees what the others wait for."""
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def begin(newton: AgentServices, end: str) -> tuple[OperationCaller, OperationCaller, UUID]:
    """A person, a model, and a fact that the model stated."""
    by_model = newton.with_trust("agent")
    fact_id = (await by_model.memories("told").remember(FactDraft(content=FACT))).memory_id
    if end == "settle_conflict":
        await by_model.curation("told").contest(fact_id.hex, NEWER)
    person = OperationCaller(newton=newton, origin="told", speaker="person")
    return person, OperationCaller(newton=by_model, origin="test"), fact_id


async def call(caller: OperationCaller, name: str, fact_id: UUID) -> str:
    """The status of the result, or the code of the error."""
    try:
        found = await run(caller, name, {"memory_id": str(fact_id), **ENDS.get(name, {})})
    except NewtonError as error:
        return error.code
    return getattr(found, "status", "done")


async def is_waiting(onlooker: Tx) -> bool:
    """Whether a transaction waits for another."""
    await onlooker.execute("select pg_stat_clear_snapshot()")
    return await count_lock_waits(onlooker) == 1


async def run_at_once(
    onlooker: Tx, first: tuple[OperationCaller, str], second: tuple[OperationCaller, str], fact_id: UUID
) -> str:
    """Begin the second operation while the transaction of the first is open; return what became of the second."""
    caller, name = first
    async with asyncio.TaskGroup() as tasks, caller.scope.transaction() as tx:
        await call(caller.within(tx), name, fact_id)
        other = tasks.create_task(call(*second, fact_id), context=Context())
        await until(lambda: is_waiting(onlooker))
    return other.result()


async def read(newton: AgentServices, fact_id: UUID) -> tuple[str | None, int]:
    """The state of the fact, and how often a person confirmed it."""
    async with newton.scope.transaction() as tx:
        state = await tx.fetchval("select state from memory.memories where memory_id = $1", fact_id)
        sql = "select count(*) from memory.confirmations where memory_id = $1 and trust = 'user'"
        return state, await tx.fetchval(sql, fact_id)


@pytest.mark.parametrize("end", ENDS)
async def test_a_model_that_comes_second_sees_the_confirmation(newton: AgentServices, onlooker: Tx, end: str) -> None:
    """S002-16"""
    person, model, fact_id = await begin(newton, end)
    code = await run_at_once(onlooker, (person, "confirm"), (model, end), fact_id)
    assert code == ("unsettled" if end == "supersede" else "forbidden")
    assert await read(newton, fact_id) == ("CONFIRMED", 1)


@pytest.mark.parametrize("end", ENDS)
async def test_a_person_who_comes_second_confirms_nothing_that_is_replaced_or_forgotten(
    newton: AgentServices, onlooker: Tx, end: str
) -> None:
    """The person is told so; what a model retracted is in force again. S002-16"""
    person, model, fact_id = await begin(newton, end)
    code = await run_at_once(onlooker, (model, end), (person, "confirm"), fact_id)
    assert code == {"retract": "done", "forget": "not_found"}.get(end, "conflict")
    after = {"retract": ("CONFIRMED", 1), "forget": (None, 0)}.get(end, ("SUPERSEDED", 0))
    assert await read(newton, fact_id) == after


async def test_a_model_does_not_end_a_fact_of_a_person_by_its_own_duplicate(newton: AgentServices) -> None:
    """What retracts a duplicate retracts its original. S002-16"""
    _, model, fact_id = await begin(newton, "retract")
    original = (await newton.memories("told").remember(FactDraft(content="Dora has her office in Graz."))).memory_id
    async with newton.scope.transaction() as tx:
        await merge_duplicates(tx, [(fact_id, original)], ctx=newton.scope.write_context())
    before = await read(newton, original)
    assert await call(model, "retract", fact_id) == "forbidden"
    assert await read(newton, original) == before


async def test_a_change_of_a_fact_waits_for_who_learns_a_value_of_its_attribute(
    newton: AgentServices, onlooker: Tx
) -> None:
    """Both lock the attribute before the rows, so that neither waits for the other for ever. S002-16"""
    person = OperationCaller(newton=newton, origin="told", speaker="person")
    draft = FactDraft(content="Dora lives in Graz.", subject="Dora", attribute="lives in")
    fact_id = (await newton.memories("told").remember(draft)).memory_id
    async with asyncio.TaskGroup() as tasks, newton.scope.transaction() as tx:
        ctx = newton.scope.write_context()
        newer = NewFact(ref="newer", content="Dora lives in Linz.", valid_from=ctx.now, subject="Dora")
        newer = replace(newer, attribute="lives in")
        await lock_attributes(tx, [newer.attribute_key or ("", "")], ctx=ctx)
        other = tasks.create_task(run(person, "retract", {"memory_id": str(fact_id)}), context=Context())
        await until(lambda: is_waiting(onlooker))
        await add_facts(tx, [newer], ctx=ctx)
    other.result()
    assert await read(newton, fact_id) == ("INACTIVE", 0)
