"""Caps on the number of current memories per kind. Memories beyond a cap are archived until there is room."""

from collections.abc import Mapping

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.memory import ARCHIVED, Kind, WriteContext
from newton.memory.store import PlannedTransition
from newton.text.names import HALF_LIFE_DAYS, SALIENCE_PRIOR

SQL = load("newton.heart.lifecycle", "caps.sql")


def caps_by_kind(thresholds: LifecycleThresholds) -> Mapping[Kind, int]:
    """Return the cap of each kind, in the order in which the caps are applied.

    Relations come before entities, because a current relation keeps its entities current.
    """
    return {
        "event": thresholds.max_events,
        "relation": thresholds.max_relations,
        "entity": thresholds.max_entities,
        "procedure": thresholds.max_procedures,
        "passage": thresholds.max_passages,
    }


async def plan_cap_transitions(tx: Tx, kind: Kind, limit: int, *, ctx: WriteContext) -> list[PlannedTransition]:
    """Return the transitions after which the best `limit` memories of a kind are current and all others archived."""
    rows = await SQL["list_over_cap"].fetch_all(
        tx, agent_id=ctx.agent_id, kind=kind, cap=limit, enough=SALIENCE_PRIOR, now=ctx.now, half_life=HALF_LIFE_DAYS
    )
    kept, dropped = (
        f"it ranks among the best {limit:,} of its kind again",
        f"it ranks below the best {limit:,} of its kind",
    )
    return [
        PlannedTransition(row["memory_id"], "restored", row["state"], "ACTIVE", kept)
        if row["within"]
        else PlannedTransition(row["memory_id"], "archived", row["state"], ARCHIVED, dropped)
        for row in rows
    ]
