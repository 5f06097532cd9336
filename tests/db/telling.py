"""Short ways to tell facts on days, and to see what became of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from newton.db.pool import Tx
from newton.heart.facts.fact_store import FactOutcome, NewFact, add_facts
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id
from newton.memory.memory import Trust
from tests.support import ANA, NOON, ground, teller


def day(number: float) -> datetime:
    return NOON + timedelta(days=number)


def on(number: float, agent_id: UUID = ANA, *, trust: Trust = "user", origin: str = "test") -> LifecycleContext:
    """Somebody who tells things on a day."""
    return ground(teller(agent_id, trust=trust, origin=origin, now=day(number)))


def says(
    value: str,
    of: float = 0,
    *,
    subject: str = "Ana",
    attribute: str = "lives in",
    until: float | None = None,
    core: bool = False,
) -> NewFact:
    """What is told of a day, under a ref of its own. `lives in` has one value at a time, `likes` many."""
    return NewFact(
        ref=str(new_id()),
        content=f"{subject} {attribute} {value}",
        valid_from=day(of),
        valid_to=None if until is None else day(until),
        subject=subject,
        attribute=attribute,
        is_core=core,
    )


async def tell(tx: Tx, *statements: NewFact, ctx: LifecycleContext | None = None) -> list[FactOutcome]:
    """By default by the user, on the last day that the statements tell of."""
    last = max(statement.valid_from for statement in statements)
    return await add_facts(tx, statements, ctx=ctx or ground(teller(now=last)))


async def known(tx: Tx, value: str, agent_id: UUID = ANA) -> UUID:
    """The fact whose words end so; of one that was told anew after its end, the last."""
    return await tx.fetchval(
        "select memory_id from memory.memories where agent_id = $1 and kind = 'fact' and right(full_text, $3) = $2"
        " order by created_at desc, memory_id desc limit 1",
        agent_id,
        value,
        len(value),
    )


async def states(tx: Tx, agent_id: UUID = ANA) -> dict[str, str]:
    """The state of every fact, by the last word of it. Checks that the database's own constraint holds by now."""
    await tx.execute("set constraints all immediate")
    await tx.execute("set constraints all deferred")
    rows = await tx.fetch(
        "select full_text, state from memory.memories where agent_id = $1 and kind = 'fact' order by memory_id",
        agent_id,
    )
    return {row["full_text"].split()[-1]: row["state"] for row in rows}


async def holding(tx: Tx, agent_id: UUID = ANA) -> set[str]:
    """The last word of every fact that is current knowledge, as the database notes it."""
    rows = await tx.fetch(
        "select m.full_text from heart.facts as f join memory.memories as m using (agent_id, memory_id)"
        " where f.agent_id = $1 and f.is_current",
        agent_id,
    )
    return {row["full_text"].split()[-1] for row in rows}


async def reasons(tx: Tx, value: str, agent_id: UUID = ANA) -> Sequence[str]:
    """How the changes of a fact are called and why they were made, the oldest first."""
    rows = await tx.fetch(
        "select event, reason from memory.transitions where agent_id = $1 and memory_id = $2 order by transition_id",
        agent_id,
        await known(tx, value, agent_id),
    )
    return [f"{row['event']}: {row['reason']}" for row in rows]
