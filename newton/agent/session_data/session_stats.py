"""Statistics of one session: its tokens by part, its latest context, its compactions, and what is masked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import computed_field

from newton.agent.scope import AgentScope
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle_store import ContextUsage
from newton.dialogue import context_injections, log, sessions
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.entry_store import CompactionStats, EntryStatus
from newton.dialogue.view import ViewMessage, count_view_tokens

MASKED, SUMMARIES, INJECTED, TOOL_CALLS = "masked", "summaries", "injected", "tool_calls"
PART_BY_KIND = {"mask": MASKED, "injected": INJECTED}


@dataclass(frozen=True, slots=True)
class PartSize:
    """The number of messages of one part of what a model is sent, and their tokens with the overhead of each."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedOutputs:
    """The number of masked (shortened) tool outputs, and the tokens that this saves."""

    messages: int
    tokens_saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryStats:
    """The compactions of one kind: those in use, their tokens, the tokens of what they replace, and those undone."""

    kind: str
    in_use: int
    tokens: int
    tokens_before: int
    restored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStats:
    """Statistics of a session.

    `messages` and `log_tokens` are of all stored messages; `view_tokens` and `parts` of those that a model is sent:
    system, user, assistant, tool_calls, masked, summaries and injected. `max_tokens` is their maximum in a request.
    `injected_tokens` are of the texts in every context of the session, `context` of its latest one (null without one).
    `runs` are the runs of compaction strategies.
    """

    session: str
    messages: int
    log_tokens: int
    view_tokens: int
    max_tokens: int
    parts: Mapping[str, PartSize]
    compactions: Sequence[EntryStats]
    runs: Sequence[CompactionStats]
    injected_tokens: int
    context: ContextUsage | None

    @computed_field
    @property
    def masked(self) -> MaskedOutputs:
        found = [one for one in self.compactions if one.kind == "mask"]
        saved = sum(one.tokens_before - one.tokens for one in found)
        return MaskedOutputs(messages=sum(one.in_use for one in found), tokens_saved=saved)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatsService:
    """Statistics of sessions of one agent. `conversation_tokens` is the most that a model is sent of a session."""

    scope: AgentScope
    conversation_tokens: int

    async def read(self, session: str) -> SessionStats:
        """Return the statistics of the session. Raises NotFoundError for an unknown one."""
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=session)
            key = {"agent_id": agent_id, "session_id": session_id}
            view = (await log.load_view(tx, **key)).view
            injections = await context_injections.list_injections(tx, agent_id=agent_id, session_id=session_id)
            return SessionStats(
                session=session,
                messages=await log.get_last_position(tx, **key) + 1,
                log_tokens=await log.get_token_count(tx, **key),
                view_tokens=count_view_tokens(view),
                max_tokens=self.conversation_tokens,
                parts=measure_parts(view),
                compactions=count_entries(await entry_store.list_entries(tx, **key)),
                runs=await entry_store.list_run_stats(tx, **key),
                injected_tokens=sum(sum(one.line_tokens or ()) for one in injections),
                context=await bundle_store.read_latest_usage(tx, **key),
            )


def measure_parts(view: Sequence[ViewMessage]) -> dict[str, PartSize]:
    """Return the size of each part of what a model is sent, without empty parts. Pure.

    The parts are `system`, `user` and `assistant` for messages by role, `tool_calls` for calls with their results,
    `masked` for shortened tool outputs, `summaries`, and `injected` for messages of other sessions.
    """
    sizes: dict[str, PartSize] = {}
    for item in view:
        part = _find_part(item)
        known = sizes.get(part, PartSize(0, 0))
        sizes[part] = PartSize(known.messages + 1, known.tokens + item.tokens)
    return sizes


def count_entries(entries: Sequence[EntryStatus]) -> list[EntryStats]:
    """Return the statistics of compaction entries by kind. Pure.

    An entry within a larger one that is in use replaces nothing, so it is not counted.
    """
    outermost: list[EntryStatus] = []
    for status in entries:  # by position, an entry before those that it includes
        is_inner = outermost and status.entry.last <= outermost[-1].entry.last
        if status.restored_at is None and not is_inner:
            outermost.append(status)
    counted = [*outermost, *(status for status in entries if status.restored_at)]
    groups = groupby(sorted(counted, key=lambda one: one.entry.kind), key=lambda one: one.entry.kind)
    return [_count_kind(kind, list(group)) for kind, group in groups]


def _count_kind(kind: str, entries: Sequence[EntryStatus]) -> EntryStats:
    in_use = [status.entry for status in entries if status.restored_at is None]
    return EntryStats(
        kind=kind,
        in_use=len(in_use),
        tokens=sum(entry.tokens for entry in in_use),
        tokens_before=sum(entry.before for entry in in_use),
        restored=len(entries) - len(in_use),
    )


def _find_part(item: ViewMessage) -> str:
    if item.kind != "line":
        return PART_BY_KIND.get(item.kind, SUMMARIES)
    return TOOL_CALLS if item.is_tool_work else item.role
