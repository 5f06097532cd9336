"""Record of the items that each model proposed: how many were kept, and why the others were dropped."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.reconciliation.reconciling_types import CheckedAnswer
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.agent.reconciliation", "proposal_log.sql")

MAX_ITEMS = 200  # of one model
MAX_AGE = timedelta(days=7)  # after which a model that was switched off is tried again
MIN_ITEMS = 30  # from which a model is judged
MAX_DROPPED = 0.5  # share from which a model is not asked any more
MAX_OPERATION = 30  # characters of what a model gave as an operation


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The latest items that a model proposed: those that were kept, and those that were dropped by reason."""

    model: str
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def proposed(self) -> int:
        return self.kept + sum(self.dropped.values())

    @property
    def is_switched_off(self) -> bool:
        """Return whether the model is not asked any more, because more than half of its items were dropped."""
        return self.proposed >= MIN_ITEMS and self.proposed - self.kept > MAX_DROPPED * self.proposed

    @property
    def description(self) -> str:
        """Return a text for a person: how many items were kept, and whether the model is no longer asked."""
        reasons = "; ".join(f"{count} {reason}" for reason, count in self.dropped.items())
        counts = f"{self.model} proposed {self.proposed} changes of memory in 7 days, of which {self.kept} were kept"
        detail = f"{counts} (dropped: {reasons})" if reasons else counts
        end = "; it is not asked any more, because most of them were not usable" if self.is_switched_off else ""
        return f"{detail}{end}"


async def record_answer(tx: Tx, answer: CheckedAnswer, *, model: str, malformed: int, ctx: WriteContext) -> None:
    """Record which proposed changes of a model's answer were kept or dropped. `malformed` parts were no changes."""
    rows: list[tuple[str, str | None]] = [(item.op, None) for item in answer.kept]
    rows += [(one.item.op[:MAX_OPERATION] or "none", one.reason) for one in answer.dropped]
    rows += [("none", "not an item")] * malformed
    if not rows:
        return
    operations, reasons = zip(*rows[:MAX_ITEMS], strict=True)
    await SQL["insert_proposals"].execute(
        tx,
        agent_id=ctx.agent_id,
        proposal_ids=[new_id() for _ in operations],
        model=model,
        operations=operations,
        drop_reasons=reasons,
        now=ctx.now,
    )
    await SQL["delete_old"].execute(tx, agent_id=ctx.agent_id, model=model, since=ctx.now - MAX_AGE, max_rows=MAX_ITEMS)


async def list_records(tx: Tx, *, agent_id: UUID, now: datetime) -> Sequence[ModelRecord]:
    """Return what each model proposed within MAX_AGE, by the name of the model."""
    kept, dropped = dict[str, int](), defaultdict[str, dict[str, int]](dict)
    for row in await SQL["count_proposals"].fetch_all(tx, agent_id=agent_id, since=now - MAX_AGE):
        if row["drop_reason"] is None:
            kept[row["model"]] = row["items"]
        else:
            dropped[row["model"]][row["drop_reason"]] = row["items"]
    return [ModelRecord(model, kept.get(model, 0), dropped[model]) for model in sorted({*kept, *dropped})]


async def is_switched_off(tx: Tx, *, model: str, agent_id: UUID, now: datetime) -> bool:
    """Return whether a model is no longer asked, because most of its recent proposals were dropped."""
    records = await list_records(tx, agent_id=agent_id, now=now)
    return any(one.model == model and one.is_switched_off for one in records)


async def count_outcomes(tx: Tx, *, agent_id: UUID, now: datetime) -> Mapping[tuple[str, str], int]:
    """Return the number of proposed items by model and outcome: "kept", or why they were dropped."""
    records = await list_records(tx, agent_id=agent_id, now=now)
    return {
        (one.model, outcome): items for one in records for outcome, items in {"kept": one.kept, **one.dropped}.items()
    }
