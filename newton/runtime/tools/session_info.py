"""JSON models of the statistics of a session, for HTTP and the tools."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from newton.agent.session_data.session_stats import SessionStats
from newton.dialogue.compaction.entry_store import CompactionStats
from newton.runtime.tools.views import ViewModel


class PartSizeInfo(ViewModel):
    """The number of messages of one part of a view, and their tokens."""

    messages: int
    tokens: int


class MaskedInfo(ViewModel):
    """The number of masked (shortened) tool outputs, and the tokens that this saves."""

    messages: int
    tokens_saved: int


class EntryStatsInfo(ViewModel):
    """The compactions of one kind: those in use with the tokens before and after, and the number of those undone."""

    kind: str
    in_use: int
    tokens: int
    tokens_before: int
    restored: int


class ContextUsageInfo(ViewModel):
    """The tokens of the latest context of a session: all, the budget, and those of each layer (section)."""

    bundle_id: UUID
    created_at: datetime
    tokens: int
    budget: int
    layers: dict[str, int]


class SessionStatsResponse(ViewModel):
    """Statistics of a session. The view is what a model is sent of its messages, before a request is fitted."""

    session: str
    messages: int = Field(description="The number of stored messages.")
    log_tokens: int = Field(description="The tokens of all stored messages.")
    view_tokens: int
    max_tokens: int = Field(description="The maximum tokens of the view in a request.")
    parts: dict[str, PartSizeInfo] = Field(
        description="The view by part: system, user, assistant, tool_calls, masked, summaries, injected."
    )
    masked: MaskedInfo
    compactions: list[EntryStatsInfo]
    runs: list[CompactionStats]
    injected_tokens: int = Field(description="The tokens of the texts that every context of the session shows.")
    context: ContextUsageInfo | None


def to_stats_response(stats: SessionStats) -> SessionStatsResponse:
    return SessionStatsResponse.from_source(
        stats,
        parts={name: PartSizeInfo.from_source(size) for name, size in stats.parts.items()},
        masked=MaskedInfo(messages=stats.masked.messages, tokens_saved=stats.masked.tokens),
        compactions=[EntryStatsInfo.from_source(one) for one in stats.compactions],
        runs=list(stats.runs),
        context=stats.context and ContextUsageInfo.from_source(stats.context),
    )
