"""How many memories of a kind are in force: what is beyond that is archived, and comes back when there is room."""

from collections.abc import Mapping

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.lifecycle.thresholds import Thresholds
from newton.heart.naming import ENOUGH, HALF_LIFE_DAYS
from newton.memory.memory import ARCHIVED, Kind, Teller
from newton.memory.transitions import Step

SQL = load("newton.heart.lifecycle", "caps.sql")


def caps(thresholds: Thresholds) -> Mapping[Kind, int]:
    """The most of each kind. Relations come before entities: who is archived may still be bound."""
    return {
        "event": thresholds.most_events,
        "relation": thresholds.most_relations,
        "entity": thresholds.most_entities,
        "procedure": thresholds.most_procedures,
        "passage": thresholds.most_passages,
    }


async def crossing(tx: Tx, kind: Kind, most: int, *, ctx: Teller) -> list[Step]:
    """The steps that are due so that the best of the kind are in force, so many at most, and no other."""
    rows = await SQL["list_over_cap"].all(
        tx, agent_id=ctx.agent_id, kind=kind, cap=most, enough=ENOUGH, now=ctx.now, half_life=HALF_LIFE_DAYS
    )
    steps: list[Step] = []
    for row in rows:
        event, after = ("restored", "ACTIVE") if row["within"] else ("archived", ARCHIVED)
        because = "there is room for it again" if row["within"] else f"{most:,} others of its kind are worth more"
        steps.append(Step(memory_id=row["memory_id"], event=event, before=row["state"], after=after, because=because))
    return steps
