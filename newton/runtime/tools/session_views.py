"""JSON models of the compaction of sessions, shared by HTTP responses and the results of tools."""

from datetime import datetime
from uuid import UUID

from newton.agent.services.sessions import CompactionOutcome
from newton.dialogue.compaction.entry_store import EntryStatus
from newton.runtime.tools.views import ViewModel


class CompactionObstacleInfo(ViewModel):
    """An obstacle to the requested limit of a session: a reason, and the tokens of these messages."""

    reason: str
    tokens: int


class CompactionReport(ViewModel):
    """The tokens of the view before and after a compaction, its limit, and what keeps the view above this limit."""

    tokens_before: int
    tokens_after: int
    max_tokens: int
    reached: bool
    obstacles: list[CompactionObstacleInfo]


class CompactionInfo(ViewModel):
    """A compaction: a shorter text that replaces older messages in the view."""

    compaction_id: UUID
    kind: str
    first_position: int
    last_position: int
    text: str
    tokens: int
    tokens_before: int
    strategy: str
    model: str | None
    created_at: datetime
    restored_at: datetime | None


class CompactionStatsInfo(ViewModel):
    """The compactions of one strategy: runs, tokens saved and spent on a model, durations, and wrong cuts.

    Of its `entries`, `restored` were undone and of `reread` a message was read in full again. `factor` is by how much
    the strategy spares more turns because of that.
    """

    strategy: str
    runs: int
    failed: int
    saved: int
    spent: int
    mean_ms: float
    most_ms: float
    sessions: int
    last_at: datetime
    entries: int
    restored: int
    reread: int
    factor: float


def to_compaction_report(outcome: CompactionOutcome) -> CompactionReport:
    return CompactionReport(
        tokens_before=outcome.before.tokens,
        tokens_after=outcome.after.tokens,
        max_tokens=outcome.max_tokens,
        reached=outcome.is_reached,
        obstacles=[CompactionObstacleInfo.from_source(one) for one in outcome.obstacles],
    )


def to_compaction_info(status: EntryStatus) -> CompactionInfo:
    entry = status.entry
    return CompactionInfo.from_source(
        entry,
        compaction_id=entry.entry_id,
        first_position=entry.first,
        last_position=entry.last,
        tokens_before=entry.before,
        created_at=entry.made_at,
        restored_at=status.restored_at,
    )
