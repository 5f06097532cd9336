"""Sessions of an agent: their messages, what a model gets of them, compaction and branches."""

import shlex
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.compaction.service import CompactionService, use_strategy
from newton.agent.event_hooks import EventHooks
from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.agent.wills.carried_wills import carry_out
from newton.brain.pack_hooks import NO_HOOKS, HookRunner
from newton.cognition import working_set
from newton.cognition.working_set import SessionScope
from newton.db.pool import Tx
from newton.dialogue import branches, log, session_close, sessions
from newton.dialogue.branches import SessionExcerpt, SessionInfo
from newton.dialogue.brief import brief_store
from newton.dialogue.brief.brief_items import BriefItem, ClosedStatus
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.entry_store import CompactionStats, EntryStatus
from newton.dialogue.compaction.strategies import CompactionObstacle
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.log import InjectedRange
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import ViewMessage, count_view_tokens
from newton.errors import InputError, NotFoundError
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id
from newton.memory.memory import own_ref

INJECTED_DIVISOR = 4  # injected messages may take at most this part of the conversation budget


class SessionView(NamedTuple):
    """The messages of a session as a model gets them (its view), their tokens, and the tokens of all messages."""

    view: Sequence[ViewMessage]
    tokens: int
    logged: int


class ViewPreview(NamedTuple):
    """The messages that a model would be sent of a session in a request of at most `room` tokens.

    `tokens` is the size of these messages, `logged` that of all stored messages. `shorter`, `left_out` and `cut` are
    the counts of messages that are summarized, omitted and truncated.
    """

    view: Sequence[ViewMessage]
    tokens: int
    logged: int
    room: int
    shorter: int
    left_out: int
    cut: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """The messages of a session for a model before and after a compaction to `max_tokens`.

    `obstacles` are what keeps them above this limit.
    """

    before: SessionView
    after: SessionView
    max_tokens: int
    obstacles: Sequence[CompactionObstacle]

    @property
    def is_reached(self) -> bool:
        return self.after.tokens <= self.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionService:
    """Sessions of one agent, identified by name (`ref`).

    `conversation_tokens` is the maximum size of the part of a session that is sent to a model, `working_set_tokens`
    that of the working memory of a session.
    """

    scope: AgentScope
    compaction: CompactionService
    conversation_tokens: int
    working_set_tokens: int
    hooks: HookRunner = NO_HOOKS

    async def list_sessions(self) -> Sequence[SessionInfo]:
        """Return all sessions, last used first."""
        async with self.scope.transaction() as tx:
            return await branches.list_branches(tx, agent_id=self.scope.agent_id)

    async def find(self, ref: str) -> UUID | None:
        """Return the id of the session named `ref`; None if there is none."""
        try:
            async with self._session(ref) as (_, _, session_id):
                return session_id
        except NotFoundError:
            return None

    async def exists(self, ref: str) -> bool:
        """Return whether there is a session named `ref`."""
        return await self.find(ref) is not None

    async def begin(self, ref: str | None) -> UUID:
        """Return the id of the session named `ref`, and create it if needed. Without a name, create a new session."""
        name = ref or str(new_id())
        async with self._new_session_hooks(name), self.scope.write() as (tx, ctx):
            return await get_or_create_session(tx, name, agent_id=ctx.agent_id, now=ctx.now)

    async def close(self, session_id: UUID) -> None:
        """Close a session: its new messages become an episode. Without new messages nothing is stored."""
        async with self.scope.write("agent") as (tx, ctx):
            episodes = await session_close.close_session(tx, session_id=session_id, ctx=ctx)
            if episodes:
                self._publish("closed", session_id, episodes=episodes)
        await self._event_hooks.run_for_session("session_end", session_id)

    async def record_events(self, ref: str, events: Sequence[NewEvent]) -> int:
        """Store events in a session, which is created if needed; return how many were not stored yet.

        The `ref` of an event is unique in its session, for a model and for persons. The hooks of the pack may drop
        events before, and extract relations after. Raises ConflictError for a known ref with other content.
        """
        kept = await self._event_hooks.run_before_record(events)
        await self.scope.reserve_storage(*(str(one.event.payload) for one in kept))
        async with self._new_session_hooks(ref), self.scope.write("agent") as (tx, ctx):
            session_id = await get_or_create_session(tx, ref, agent_id=ctx.agent_id, now=ctx.now)
            refs = [f"{session_id} {own_ref(one.ref, self.scope.trust)}" for one in kept]
            session_events = [replace(one, ref=ref, session_id=session_id) for one, ref in zip(kept, refs, strict=True)]
            recorded = await event_store.record_events(tx, session_events, ctx=ctx)
            if recorded:
                self._publish("events_recorded", session_id, events=recorded)
        await self._event_hooks.run_after_record(session_events)
        return recorded

    @asynccontextmanager
    async def _new_session_hooks(self, ref: str) -> AsyncGenerator[None]:
        """Run the hooks of the beginning of a session after the block, if the block creates the session."""
        is_new = self.hooks.has_hooks("session_start") and not await self.exists(ref)
        yield
        if is_new and (session_id := await self.find(ref)):
            await self._event_hooks.run_for_session("session_start", session_id)

    @property
    def _event_hooks(self) -> EventHooks:
        return EventHooks(scope=self.scope, hooks=self.hooks)

    async def append(self, ref: str, lines: Sequence[Message]) -> Sequence[StoredMessage]:
        """Store the messages that are not stored yet; return them. The session is created if needed.

        Identical messages without a ref are numbered, so a repeated call stores nothing. Raises as `sessions.append`.
        """
        await self.scope.reserve_storage(*(line.content for line in lines))
        async with self._new_session_hooks(ref), self.scope.write() as (tx, ctx):
            session_id = await get_or_create_session(tx, ref, agent_id=ctx.agent_id, now=ctx.now)
            named = [replace(line, ref=own_ref(line.ref, ctx.trust)) if line.ref else line for line in lines]
            messages = sessions.cap_trust(number_duplicates(named), ctx.trust)
            stored = await sessions.append(tx, messages, session_id=session_id, ctx=ctx)
            if stored:
                session = SessionScope(
                    agent_id=ctx.agent_id, session_id=session_id, now=ctx.now, capacity=self.working_set_tokens
                )
                await working_set.add_messages(tx, [one.position for one in stored], scope=session)
                receipts = await carry_out(tx, stored, embedder=self.scope.embedder, ctx=ctx)
                self._publish("appended", session_id, messages=len(stored))
                notices = {position: receipt.without_text for position, receipt in receipts.items()}
                stored = [replace(one, notice=notices.get(one.position, "")) for one in stored]
            return stored

    async def read_log(self, ref: str, *, first: int = 0, last: int = log.MAX_POSITION) -> Sequence[StoredMessage]:
        """Return the messages at the positions `first` to `last`, including those that a branch inherits."""
        async with self._session(ref) as (tx, ctx, session_id):
            part = [log.MessageRange(first, last)]
            return await log.load_messages(tx, part, agent_id=ctx.agent_id, session_id=session_id)

    async def get_view(self, ref: str) -> SessionView:
        """Return the messages of the session as a model gets them now, however long they are."""
        async with self._session(ref) as (tx, ctx, session_id):
            return await _read_view(tx, agent_id=ctx.agent_id, session_id=session_id)

    async def preview(self, ref: str, *, max_tokens: int | None = None, strategy: str | None = None) -> ViewPreview:
        """Return the messages that a request of `max_tokens` would contain, with old ones summarized without a model.

        `max_tokens` defaults to `conversation_tokens`, `strategy` (a compaction preset or a list of strategies) to the
        setting. Stores nothing. Raises InputError if no message fits.
        """
        compaction, room = use_strategy(self.compaction, strategy), max_tokens or self.conversation_tokens
        async with self._session(ref) as (tx, ctx, session_id):
            logged = await log.get_token_count(tx, agent_id=ctx.agent_id, session_id=session_id)
        whole = await compaction.preview(session_id, max_tokens=room)
        sent = fit_to_budget(whole, max_tokens=room, count_tokens=self.scope.count_tokens)
        if whole and (not sent or count_view_tokens(sent) > room):
            hint = f"Allow more tokens: the last message has {whole[-1].tokens:,}. Only long messages are truncated."
            raise InputError(f"No message of the session {ref!r} fits into {room:,} tokens.", hint=hint)
        texts = {item.first: item.text for item in whole if item.kind != "injected"}
        shown = [item for item in sent if item.kind not in ("injected", "left_out")]
        return ViewPreview(
            view=sent,
            tokens=count_view_tokens(sent),
            logged=logged,
            room=room,
            shorter=len(_covered_positions(item for item in shown if item.entry_id)),
            left_out=len(_covered_positions(whole) - _covered_positions(shown)),
            cut=sum(item.text != texts[item.first] for item in shown),
        )

    async def compact(
        self, ref: str, *, max_tokens: int | None = None, strategy: str | None = None
    ) -> CompactionOutcome:
        """Shorten old messages in what a model is sent if they exceed `max_tokens`, down to this limit if possible.

        `max_tokens` defaults to `conversation_tokens`, `strategy` (a compaction preset or a list of strategies) to the
        setting.
        """
        compaction, limit = use_strategy(self.compaction, strategy), max_tokens or self.conversation_tokens
        async with self._session(ref) as (tx, ctx, session_id):
            before = await _read_view(tx, agent_id=ctx.agent_id, session_id=session_id)
        obstacles = await compaction.compact_to(session_id, max_tokens=limit)
        return CompactionOutcome(before=before, after=await self.get_view(ref), max_tokens=limit, obstacles=obstacles)

    async def list_entries(self, ref: str) -> Sequence[EntryStatus]:
        """Return all summaries (compaction entries) of the session by position, even those that were removed again."""
        async with self._session(ref) as (tx, ctx, session_id):
            return await entry_store.list_entries(tx, agent_id=ctx.agent_id, session_id=session_id)

    async def restore(self, ref: str, entry_ref: str) -> int:
        """Undo a summary: a model is sent its messages again. Return the number of summaries removed.

        `entry_ref` is the id of the summary or the end of the id. Raises NotFoundError for an unknown one.
        """
        async with self._session(ref) as (tx, ctx, session_id):
            entries = await entry_store.list_entries(tx, agent_id=ctx.agent_id, session_id=session_id)
            ids = [status.entry.entry_id for status in entries]
            entry_id = match_id(entry_ref, ids, ref, "compaction", "compactions")
            restored = len(await entry_store.restore(tx, entry_id, session_id=session_id, ctx=ctx))
            self._publish("restored", session_id, compaction_id=str(entry_id), restored=restored)
            return restored

    async def create_branch(self, ref: str, new_ref: str, *, at: int | None = None) -> UUID:
        """Create the session `new_ref`, which continues `ref` from the message `at` (None: the last); return its id."""
        async with self._session(ref) as (tx, ctx, parent_id):
            session_id = await branches.create_branch(tx, new_ref, parent_id=parent_id, from_position=at, ctx=ctx)
            self._publish("branched", session_id, parent_id=str(parent_id))
            return session_id

    async def inject(self, ref: str, other_ref: str, *, first: int, last: int) -> InjectedRange:
        """Show messages of another session to the model at the end of this one, until ejected; return their range.

        Raises NotFoundError for unknown messages, and InputError for too many tokens or messages of this session
        itself.
        """
        async with self._session(other_ref) as (tx, ctx, other_id):
            excerpt = SessionExcerpt(ref=other_ref, session_id=other_id, first=first, last=last)
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=ref)
            limit = self.conversation_tokens // INJECTED_DIVISOR
            injected = await branches.inject(tx, excerpt, session_id=session_id, ctx=ctx, max_tokens=limit)
            self._publish("injected", session_id, injection_id=str(injected.injection_id))
            return injected

    async def list_injections(self, ref: str) -> Sequence[InjectedRange]:
        """Return the ranges of other sessions' messages that are shown in the session."""
        async with self._session(ref) as (tx, ctx, session_id):
            return await log.list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)

    async def eject(self, ref: str, injection_ref: str) -> InjectedRange:
        """Stop showing injected messages, identified by id or the end of the id; return their range.

        Raises NotFoundError if none has this id, and InputError if several ids end so.
        """
        async with self._session(ref) as (tx, ctx, session_id):
            injections = await log.list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)
            by_id = {injected.injection_id: injected for injected in injections}
            injection_id = match_id(injection_ref, list(by_id), ref, "injection", "eject")
            await branches.eject(tx, injection_id, session_id=session_id, ctx=ctx)
            self._publish("ejected", session_id, injection_id=str(injection_id))
            return by_id[injection_id]

    async def get_compaction_stats(self, ref: str | None = None) -> Sequence[CompactionStats]:
        """Return statistics of compaction for each strategy, of the session named `ref` or of all sessions."""
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=ref) if ref else None
            return await entry_store.list_run_stats(tx, agent_id=agent_id, session_id=session_id)

    def _publish(self, event: str, session_id: UUID, **details: str | int) -> None:
        self.scope.publish(f"session.{event}", {"session_id": str(session_id), **details})

    @asynccontextmanager
    async def _session(self, ref: str) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID]]:
        """Open a transaction; yield it with a write context and the id of the session.

        Raises NotFoundError if there is no session named `ref`.
        """
        async with self.scope.write() as (tx, ctx):
            yield tx, ctx, await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefService:
    """Lists and closes items of the briefs of sessions: goals, deadlines, rules, constraints and open items.

    Sessions are identified by name (`ref`).
    """

    scope: AgentScope

    async def list_items(self, ref: str, *, only_open: bool = False) -> Sequence[BriefItem]:
        """Return the items of a session in the order in which they were said.

        Raises NotFoundError for an unknown session.
        """
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=ref)
            return await brief_store.list_items(tx, agent_id=agent_id, session_id=session_id, only_open=only_open)

    async def close(self, ref: str, item_ref: str, status: ClosedStatus) -> BriefItem:
        """Close an open item of a session; return it as it was.

        `item_ref` is the id of the item or the end of the id. Raises NotFoundError for an unknown or closed item, and
        InputError if several ids end so.
        """
        async with self.scope.write() as (tx, ctx):
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=ref)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            update = await brief_store.load_update(tx, session_id=session_id, ctx=ctx)
            by_id = {one.item_id: one for one in update.items}
            item = by_id[match_id(item_ref, list(by_id), ref, "open item", "brief")]
            last = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
            update.close(item, status, last, None)
            await brief_store.save(tx, update, session_id=session_id, ctx=ctx)
            self.scope.publish("session.brief_closed", {"session_id": str(session_id), "item_id": str(item.item_id)})
            return item


async def get_or_create_session(tx: Tx, ref: str, *, agent_id: UUID, now: datetime) -> UUID:
    """Return the id of the session named `ref`. If it does not exist, create it and publish an event."""
    session_id, new = await sessions.get_or_create(tx, agent_id=agent_id, ref=ref, now=now)
    if new:
        publish("session.created", {"session_id": str(session_id)}, agent_id=agent_id, now=now)
    return session_id


async def _read_view(tx: Tx, *, agent_id: UUID, session_id: UUID) -> SessionView:
    logged = await log.get_token_count(tx, agent_id=agent_id, session_id=session_id)
    view = (await log.load_view(tx, agent_id=agent_id, session_id=session_id)).view
    return SessionView(view, count_view_tokens(view), logged)


def match_id(suffix: str, candidates: Sequence[UUID], ref: str, noun: str, command: str) -> UUID:
    """Return the candidate whose id ends in `suffix`. Raises InputError for several, and NotFoundError for none.

    `ref` (the session), `noun` and `command` (which lists the candidates) are used in the messages.
    """
    end = suffix.replace("-", "").lower()
    matches = [candidate for candidate in candidates if end and candidate.hex.endswith(end)]
    if len(matches) > 1:
        what = f"The id {suffix!r} is ambiguous: {len(matches)} ids end in it."
        raise InputError(what, hint="Give more characters of the id.")
    if not matches:
        hint = f"`newton sessions {command} {shlex.quote(ref)}` lists the ids."
        raise NotFoundError(f"The session {ref!r} has no {noun} {suffix!r}.", hint=hint)
    return matches[0]


def number_duplicates(lines: Sequence[Message]) -> list[Message]:
    """Return the messages; identical ones without a ref are numbered by their `occurrence`, from 0.

    A message that has a number keeps it.
    """
    counts = Counter[str]()
    numbered: list[Message] = []
    for line in lines:
        numbered.append(line if line.ref or line.occurrence else replace(line, occurrence=counts[line.stable_ref]))
        counts[line.stable_ref] += 1
    return numbered


def _covered_positions(view: Iterable[ViewMessage]) -> set[int]:
    return {position for item in view if item.kind != "injected" for position in range(item.first, item.last + 1)}
