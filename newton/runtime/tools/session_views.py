"""JSON models of a compaction, shared by HTTP responses and the results of tools."""

from newton.agent.services.sessions import CompactionOutcome
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


def to_compaction_report(outcome: CompactionOutcome) -> CompactionReport:
    return CompactionReport(
        tokens_before=outcome.before.tokens,
        tokens_after=outcome.after.tokens,
        max_tokens=outcome.max_tokens,
        reached=outcome.is_reached,
        obstacles=[CompactionObstacleInfo.from_source(one) for one in outcome.obstacles],
    )
