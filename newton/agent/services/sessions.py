"""Sessions of an agent: log, view, compaction, checkpoints, branches and injections."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.compaction.service import CompactionService
from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import branches, log, session_close, sessions
from newton.dialogue.branches import BranchSummary, SessionCheckpoint, SessionExcerpt
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.entry_store import CompactionStats, EntryStatus
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.log import InjectedRange
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import ViewMessage, count_view_tokens
from newton.errors import InputError, NotFoundError
from newton.ids import new_id

INJECTED_DIVISOR = 4  # injected messages may take at most this part of the conversation budget


class SessionView(NamedTuple):
    """A view, its tokens, and the tokens of the full log."""

    view: Sequence[ViewMessage]
    tokens: int
    logged: int


class ViewPreview(NamedTuple):
    """The view that a request with `room` tokens would contain, and its tokens. `logged` is the tokens of the full log,
    `shorter` the messages in summaries, `left_out` those omitted, `cut` those truncated."""

    view: Sequence[ViewMessage]
    tokens: int
    logged: int
    room: int
    shorter: int
    left_out: int
    cut: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionService:
    """Sessions of one agent, named by ref. `conversation_tokens` is the budget of a conversation in a request."""

    scope: AgentScope
    compaction: CompactionService
    conversation_tokens: int

    async def list_sessions(self) -> Sequence[BranchSummary]:
        """Return every session, the least recently used first."""
        async with self.scope.transaction() as tx:
            return await branches.list_branches(tx, agent_id=self.scope.agent_id)

    async def exists(self, ref: str) -> bool:
        try:
            async with self.scope.transaction() as tx:
                await self._resolve_session(tx, ref)
        except NotFoundError:
            return False
        return True

    async def begin(self, ref: str | None) -> UUID:
        """Return the session of that name, created if needed; without a name, a new one."""
        async with self.scope.transaction() as tx:
            return await get_or_create_session(
                tx, ref or str(new_id()), agent_id=self.scope.agent_id, now=self.scope.now()
            )

    async def close(self, session_id: UUID) -> None:
        """End a session: its messages become an episode."""
        async with self.scope.transaction() as tx:
            made = await session_close.close_session(tx, session_id=session_id, ctx=self.scope.write_context("agent"))
            self.scope.publish("session.closed", {"session_id": str(session_id), "episodes": made})

    async def append(self, ref: str, lines: Sequence[Message]) -> Sequence[StoredMessage]:
        """Append the messages that the session lacks; create it if needed. Raises as `sessions.append`.

        Identical messages without a ref are numbered, so repeating the same call appends nothing.
        """
        async with self.scope.transaction() as tx:
            session_id = await get_or_create_session(tx, ref, agent_id=self.scope.agent_id, now=self.scope.now())
            placed = await sessions.append(
                tx, _number_duplicates(lines), session_id=session_id, ctx=self.scope.write_context()
            )
            if placed:
                self._publish("appended", session_id, messages=len(placed))
            return placed

    async def read_log(self, ref: str, *, first: int = 0, last: int = log.MAX_POSITION) -> Sequence[StoredMessage]:
        """Return all messages, ancestors' included, or a range of positions."""
        async with self.scope.transaction() as tx:
            part = [log.MessageRange(first, last)]
            return await log.load_messages(
                tx, part, agent_id=self.scope.agent_id, session_id=await self._resolve_session(tx, ref)
            )

    async def get_view(self, ref: str) -> SessionView:
        """Return the current view of the session, whatever its length."""
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
            logged = await log.get_token_count(tx, agent_id=self.scope.agent_id, session_id=session_id)
            view = (await log.load_view(tx, agent_id=self.scope.agent_id, session_id=session_id)).view
        return SessionView(view, count_view_tokens(view), logged)

    async def preview(self, ref: str, *, max_tokens: int | None = None) -> ViewPreview:
        """Return the view for a request of `max_tokens` (default: the budget), compacted without a model if due.

        Writes nothing. Raises InputError when no message fits.
        """
        room = self._token_limit(max_tokens)
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
            logged = await log.get_token_count(tx, agent_id=self.scope.agent_id, session_id=session_id)
        whole = await self.compaction.preview(session_id, max_tokens=room)
        sent = fit_to_budget(whole, max_tokens=room, count_tokens=self.scope.count_tokens)
        if whole and (not sent or count_view_tokens(sent) > room):
            hint = f"The last message alone needs {whole[-1].tokens:,}; it can be truncated to a few tokens more."
            raise InputError(f"A view of {room:,} tokens holds no line of {ref}.", hint=hint)
        words = {item.first: item.text for item in whole if item.kind != "injected"}
        told = [item for item in sent if item.kind not in ("injected", "left_out")]
        return ViewPreview(
            view=sent,
            tokens=count_view_tokens(sent),
            logged=logged,
            room=room,
            shorter=len(_covered_positions(item for item in told if item.entry_id)),
            left_out=len(_covered_positions(whole) - _covered_positions(told)),
            cut=sum(item.text != words[item.first] for item in told),
        )

    async def compact(self, ref: str, *, max_tokens: int | None = None) -> tuple[SessionView, SessionView]:
        """Compact the session if due for `max_tokens` (default: the budget); return the views before and after."""
        room = self._token_limit(max_tokens)
        before = await self.get_view(ref)
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
        await self.compaction.load_view(session_id, max_tokens=room)
        return before, await self.get_view(ref)

    async def list_entries(self, ref: str) -> Sequence[EntryStatus]:
        """Return every compaction entry, dropped ones too, by position."""
        async with self.scope.transaction() as tx:
            return await entry_store.list_entries(
                tx, agent_id=self.scope.agent_id, session_id=await self._resolve_session(tx, ref)
            )

    async def restore(self, ref: str, entry_ref: str) -> int:
        """Restore the messages behind an entry, named by the end of its id; return how many entries were dropped.
        Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
            known = await entry_store.list_entries(tx, agent_id=self.scope.agent_id, session_id=session_id)
            sought = _IdLookup(ref, "entry", "entries", f"entries {ref}")
            entry_id = _match_id(entry_ref, [one.entry.entry_id for one in known], sought)
            dropped = len(
                await entry_store.restore(tx, entry_id, session_id=session_id, ctx=self.scope.write_context())
            )
            self._publish("restored", session_id, compaction_id=str(entry_id), restored=dropped)
            return dropped

    async def create_checkpoint(self, ref: str, name: str) -> SessionCheckpoint:
        """Name the position after the last message."""
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
            made = await branches.create_checkpoint(tx, name, session_id=session_id, ctx=self.scope.write_context())
            self._publish("checkpointed", session_id, position=made.position)
            return made

    async def list_checkpoints(self, ref: str) -> Sequence[SessionCheckpoint]:
        async with self.scope.transaction() as tx:
            return await branches.list_checkpoints(
                tx, agent_id=self.scope.agent_id, session_id=await self._resolve_session(tx, ref)
            )

    async def create_branch(self, ref: str, new_ref: str, *, at: str | None = None) -> UUID:
        """Create the session `new_ref`, branched from a checkpoint, a position or the end of another."""
        async with self.scope.transaction() as tx:
            parent_id = await self._resolve_session(tx, ref)
            session_id = await branches.create_branch(
                tx, new_ref, parent_id=parent_id, from_position=at, ctx=self.scope.write_context()
            )
            self._publish("branched", session_id, parent_id=str(parent_id))
            return session_id

    async def inject(self, ref: str, other_ref: str, *, first: int, last: int) -> InjectedRange:
        """Show messages of another session at the end of this one until ejected. Raises as `branches.inject`."""
        async with self.scope.transaction() as tx:
            excerpt = SessionExcerpt(
                ref=other_ref, session_id=await self._resolve_session(tx, other_ref), first=first, last=last
            )
            session_id, most = await self._resolve_session(tx, ref), self.conversation_tokens // INJECTED_DIVISOR
            made = await branches.inject(
                tx, excerpt, session_id=session_id, ctx=self.scope.write_context(), max_tokens=most
            )
            self._publish("injected", session_id, injection_id=str(made.injection_id))
            return made

    async def list_injections(self, ref: str) -> Sequence[InjectedRange]:
        """Return the injected ranges of the session."""
        async with self.scope.transaction() as tx:
            return await log.list_injections(
                tx, agent_id=self.scope.agent_id, session_id=await self._resolve_session(tx, ref)
            )

    async def eject(self, ref: str, injection_ref: str) -> InjectedRange:
        """Remove an injection, named by the end of its id. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref)
            known = {
                one.injection_id: one
                for one in await log.list_injections(tx, agent_id=self.scope.agent_id, session_id=session_id)
            }
            injection_id = _match_id(
                injection_ref, list(known), _IdLookup(ref, "injection", "injections", f"eject {ref}")
            )
            await branches.eject(tx, injection_id, session_id=session_id, ctx=self.scope.write_context())
            self._publish("ejected", session_id, injection_id=str(injection_id))
            return known[injection_id]

    async def get_compaction_stats(self, ref: str | None = None) -> Sequence[CompactionStats]:
        """Return compaction statistics by strategy, of one session or of all."""
        async with self.scope.transaction() as tx:
            session_id = await self._resolve_session(tx, ref) if ref else None
            return await entry_store.list_run_stats(tx, agent_id=self.scope.agent_id, session_id=session_id)

    def _publish(self, event: str, session_id: UUID, **more: str | int) -> None:
        about = {"session_id": str(session_id), **more}
        self.scope.publish(f"session.{event}", about)

    def _token_limit(self, max_tokens: int | None) -> int:
        if max_tokens is not None and max_tokens < 1:
            raise InputError(f"A view of {max_tokens} tokens is not possible.", hint="Give 1 or more.")
        return max_tokens or self.conversation_tokens

    async def _resolve_session(self, tx: Tx, ref: str) -> UUID:
        return await sessions.get_session_id(tx, agent_id=self.scope.agent_id, ref=ref)


async def get_or_create_session(tx: Tx, ref: str, *, agent_id: UUID, now: datetime) -> UUID:
    """Return the session of that name; create it and publish an event if it is new."""
    session_id, new = await sessions.get_or_create(tx, agent_id=agent_id, ref=ref, now=now)
    if new:
        publish("session.created", {"session_id": str(session_id)}, agent_id=agent_id, now=now)
    return session_id


class _IdLookup(NamedTuple):
    """Lookup of an item by the end of its id, and the name of its kind in errors."""

    ref: str
    singular: str
    plural: str
    list_command: str


def _match_id(suffix: str, candidates: Sequence[UUID], lookup: _IdLookup) -> UUID:
    end = suffix.replace("-", "").lower()
    meant = [one for one in candidates if end and one.hex.endswith(end)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InputError(f"The ids of {len(meant)} {lookup.plural} end in {suffix!r}.", hint="Give more characters.")
    raise NotFoundError(
        f"The session {lookup.ref!r} has no {lookup.singular} {suffix!r}.",
        hint=f"`newton sessions {lookup.list_command}` lists them.",
    )


def _number_duplicates(lines: Sequence[Message]) -> list[Message]:
    """Number identical messages without a ref by occurrence."""
    seen = Counter[str]()
    told: list[Message] = []
    for line in lines:
        told.append(line if line.ref or line.occurrence else replace(line, occurrence=seen[line.stable_ref]))
        seen[line.stable_ref] += 1
    return told


def _covered_positions(view: Iterable[ViewMessage]) -> set[int]:
    return {place for item in view if item.kind != "injected" for place in range(item.first, item.last + 1)}
