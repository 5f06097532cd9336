"""The models whose latest call in the background failed. A model that answers again is removed."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.llm.usage import SUMMARY_PURPOSE
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.agent.llm", "failing_models.sql")

# What a call is for, in words; a part of Newton that does without the model takes its place until it works again.
PURPOSES: Mapping[str, str] = {
    "reconcile": "the reconciliation of new lines with known items",
    SUMMARY_PURPOSE: "summaries of conversations",
    "compress": "summaries of long messages",
    "frame": "the choice of frames",
}

log = logging.getLogger("newton.models")
log.addHandler(logging.NullHandler())  # the daemon writes its entries to its log; a command does not show them


class FailingModel(NamedTuple):
    """A model whose latest `calls` calls for a purpose failed. `failure` is why the last one did."""

    purpose: str
    model: str
    failure: str
    calls: int
    failing_since: datetime
    last_failure_at: datetime

    @property
    def description(self) -> str:
        """Return one sentence for a person: which model fails for what, since when, and why."""
        times = f"its last {self.calls:,} calls failed" if self.calls > 1 else "its last call failed"
        purpose = PURPOSES.get(self.purpose, self.purpose)
        since = f"{self.failing_since:%Y-%m-%d %H:%M} UTC"
        return f"{self.model} does not work for {purpose} since {since}: {times}. {self.failure}"


async def record_failure(scope: AgentScope, purpose: str, *, model: str, failure: str) -> None:
    """Record that a call failed. The first failure after a success is also logged and published as `model.failed`."""
    async with scope.transaction() as tx:
        row = await SQL["record_failure"].fetch_one(
            tx, agent_id=scope.agent_id, purpose=purpose, model=model, failure=failure, failed_at=scope.now()
        )
        is_first = row is not None and row["calls"] == 1
        if is_first:
            scope.publish("model.failed", {"purpose": purpose, "model": model})
    if is_first:
        log.warning("model_failed", extra={"purpose": purpose, "model": model, "failure": failure})


async def has_failed(tx: Tx, *, agent_id: UUID, purpose: str) -> bool:
    """Return whether the latest call for a purpose failed."""
    row = await SQL["has_failed"].fetch_one(tx, agent_id=agent_id, purpose=purpose)
    return row is not None and row["failed"]


async def record_success(scope: AgentScope, purpose: str, *, model: str) -> None:
    """Record that a call succeeded. After a failure, this is logged and published as `model.recovered`."""
    async with scope.transaction() as tx:
        row = await SQL["delete_failure"].fetch_one(tx, agent_id=scope.agent_id, purpose=purpose)
        if row is not None:
            scope.publish("model.recovered", {"purpose": purpose, "model": model, "failed_calls": row["calls"]})
    if row is not None:
        log.warning("model_recovered", extra={"purpose": purpose, "model": model, "failed_calls": row["calls"]})


async def list_failing_models(tx: Tx, *, agent_id: UUID) -> list[FailingModel]:
    """Return the models that fail, the one that has failed for longest first."""
    return [FailingModel(*row) for row in await SQL["list_failing_models"].fetch_all(tx, agent_id=agent_id)]
