"""Service that measures the quality of an agent's contexts in a period. It reads all data in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.clock import Clock
from newton.cognition.bundles.trace import BundleTrace, StoredCandidate, decode_candidates, decode_trace
from newton.cognition.metrics.metrics import (
    ContextSample,
    FactConfirmationCounts,
    ItemSample,
    MetricPeriod,
    PrefixSample,
    QualityReport,
    RatedUseCounts,
    TurnSample,
    compute_report,
)
from newton.cognition.scoring.reply_usage import find_used
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import InputError

SQL = load("newton.cognition.metrics", "metrics.sql")

MAX_DAYS = 3_650
FORGOTTEN_TEXT = "[forgotten]"  # text of a deleted message


class _LoadedContext(NamedTuple):
    """The decoded trace of a stored context, and the candidates that it showed."""

    trace: BundleTrace
    items: Sequence[StoredCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsService:
    """Measures the quality of the contexts of one agent."""

    agent_id: UUID
    db: Database
    clock: Clock

    async def report(self, days: int = 7) -> QualityReport:
        """Return the metrics of the last `days`. Raises InputError unless `days` is from 1 to `MAX_DAYS`."""
        if not 1 <= days <= MAX_DAYS:
            raise InputError(f"Metrics of {days} days are not possible.", hint=f"Give 1 to {MAX_DAYS:,} days.")
        now = self.clock.now()
        async with self.db.transaction(self.agent_id) as tx:
            return compute_report(await _load_period(tx, now - timedelta(days=days), now, agent_id=self.agent_id))


async def _load_period(tx: Tx, since: datetime, until: datetime, *, agent_id: UUID) -> MetricPeriod:
    between = {"agent_id": agent_id, "since": since, "until": until}
    cost = await SQL["sum_turn_tokens"].fetch_one(tx, **between)
    assert cost is not None
    facts = await SQL["count_facts"].fetch_one(tx, agent_id=agent_id, until=until)
    uses = await SQL["count_rated_uses"].fetch_one(tx, **between)
    assert facts is not None and uses is not None
    return MetricPeriod(
        since=since,
        until=until,
        turns=await _load_turns(tx, await SQL["list_turns"].fetch_all(tx, **between), agent_id=agent_id),
        memories_by_day=_group_by_day(await SQL["count_created"].fetch_all(tx, **between)),
        facts=FactConfirmationCounts(**facts),
        uses=RatedUseCounts(**uses),
        model_tokens=cost["tokens"],
        prefixes=[PrefixSample(**row) for row in await SQL["list_prefixes"].fetch_all(tx, **between)],
    )


async def _load_turns(tx: Tx, rows: Sequence[Record], *, agent_id: UUID) -> list[TurnSample]:
    contexts = [_decode_context(row) if row["bundle_id"] else None for row in rows]
    shown_ids = list({candidate.memory_id for context in contexts if context for candidate in context.items})
    forms = {r["memory_id"]: r for r in await SQL["list_forms"].fetch_all(tx, agent_id=agent_id, memory_ids=shown_ids)}
    return [_create_turn(row, context, forms) for row, context in zip(rows, contexts, strict=True)]


def _decode_context(row: Record) -> _LoadedContext | None:
    """Decode a stored context. Return None if another version wrote it in a different format."""
    try:
        trace = decode_trace(row["trace"], input_text=row["made_for"])
        candidates, _ = decode_candidates(trace, row["memory_ids"], row["candidates"])
    except (ValueError, LookupError):
        return None
    return _LoadedContext(trace, [candidate for candidate in candidates if candidate.detail])


def _create_turn(row: Record, loaded: _LoadedContext | None, forms: Mapping[UUID, Record]) -> TurnSample:
    by_model = row["answered_by"] == "model"
    return TurnSample(
        created_at=row["at"],
        session_id=row["session_id"],
        is_first=row["opening"],
        method=row["how"],
        by_model=by_model,
        has_text=by_model and FORGOTTEN_TEXT not in (row["reply"], row["input"]),
        context=_create_context(row, loaded, forms) if loaded else None,
    )


def _create_context(row: Record, loaded: _LoadedContext, forms: Mapping[UUID, Record]) -> ContextSample:
    shown = [item for item in loaded.items if item.memory_id in forms]
    texts = {item.memory_id: str(forms[item.memory_id][item.detail or "summary"]) for item in shown}
    refs = {memory_id: forms[memory_id]["ref"] for memory_id in texts}
    used = find_used(row["reply"], texts, input_text=row["input"], refs=refs)
    probability, cosine = (loaded.trace.features.index(name) for name in ("probability", "cosine"))
    inputs = loaded.trace.assembly_input
    unjudged = inputs.unranked | inputs.triggered
    return ContextSample(
        bundle_id=row["bundle_id"],
        frame=row["frame"],
        is_frame_forced=loaded.trace.frame_choice.forced,
        profile=row["profile"],
        budget=row["budget"],
        tokens=row["tokens"],
        build_ms=sum(loaded.trace.timings_ms.values()),
        items=tuple(
            ItemSample(
                None if i.memory_id in unjudged else i.features[probability], i.features[cosine], i.memory_id in used
            )
            for i in shown
        ),
    )


def _group_by_day(rows: Sequence[Record]) -> Mapping[date, Mapping[str, int]]:
    days: dict[date, dict[str, int]] = {}
    for row in rows:
        days.setdefault(row["day"], {})[row["kind"]] = row["memories"]
    return days
