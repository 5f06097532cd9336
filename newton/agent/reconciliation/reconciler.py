"""Reconciler: ask a model what new lines change, check its answer, and apply the accepted items."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from uuid import UUID

from newton.agent.llm import usage
from newton.agent.llm.structured import StructuredLLM
from newton.agent.prompting.system_prompt import find_local_zone
from newton.agent.reconciliation import proposal_log
from newton.agent.reconciliation.item_application import (
    ApplicationContext,
    AppliedItems,
    apply_items,
    list_drafts,
)
from newton.agent.reconciliation.known_items import find_known_items, list_user_names
from newton.db.pool import Tx
from newton.dialogue import message_queues as queue
from newton.dialogue.message_queues import DueSession, UnreadLines
from newton.errors import ContextWindowError, ProviderError, RefusedRequestError, TokenQuotaError
from newton.heart.reconciliation.answer_reader import ReconcilingOutput, read_answer
from newton.heart.reconciliation.item_checks import check_items
from newton.heart.reconciliation.known_checks import list_implied_items
from newton.heart.reconciliation.prompt import estimate_answer, render_prompt, split_batches
from newton.heart.reconciliation.reconciling_types import CheckedAnswer, NewLine, ReadAnswer, ReconcilingInput
from newton.providers.chat import ChatMessage

PURPOSE = "reconcile"
MAX_FAILED_READINGS = 2  # unreadable answers to the same lines, after which they count as read
MAX_FAILED_CALLS = 4  # for the same lines, after which they may count as read
GIVE_UP_AFTER = timedelta(days=1)  # since the lines were stored, if the model answers for others
TIMEOUT_SECONDS = 180.0
MAX_SHARE, SHARE_PERIOD = 0.15, timedelta(days=7)  # of the tokens of a week, above which lines wait longer
SOON_LINES, SOON_PAUSE = 8, timedelta(minutes=10)
LATE_LINES, LATE_PAUSE = 24, timedelta(minutes=30)
RECENT_MEMORIES = 200  # whose sessions are read after a turn; a job reads the others

# Sessions that this process reads now: the job and the reading after a turn would ask the model the same twice. Another
# process may ask as well; one of the two answers is applied.
_read_now = set[UUID]()


@dataclass(frozen=True, slots=True)
class ReconciliationResult:
    """The counts of a run: model calls, proposed changes kept and dropped, sessions for which the model failed."""

    calls: int = 0
    kept: int = 0
    dropped: int = 0
    failed: int = 0

    def __add__(self, other: "ReconciliationResult") -> "ReconciliationResult":
        return ReconciliationResult(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReconciler:
    """Lets a model read new messages of one agent, and applies the changes of memory that it proposes.

    No transaction is open while the model works. `parse` stores and embeds what lines state in their own words, before
    each call, because lines come meanwhile.
    """

    llm: StructuredLLM
    user_names: tuple[str, ...] = ()
    parse: Callable[[], Awaitable[object]] | None = None

    async def reconcile(self, limit: int, *, only_due: bool = False, only_recent: bool = False) -> ReconciliationResult:
        """Read the new lines of up to `limit` sessions, those of closed sessions and of long pauses first.

        With `only_due`, open sessions are read after a few lines or a pause, or later if the calls would take too
        large a share of the tokens; with `only_recent`, only sessions of the latest memories. A model that is
        switched off is not asked. Raises TokenQuotaError, and ProviderError if the model fails twice in a row or for
        all sessions; what was applied remains.
        """
        scope, result = self.llm.scope, ReconciliationResult()
        async with scope.transaction() as tx:
            if await self._is_switched_off(tx):
                return result
            lines, pause = await self._find_threshold(tx) if only_due else (1, timedelta(0))
            due = await queue.list_due_sessions(
                tx,
                agent_id=scope.agent_id,
                limit=limit,
                idle_since=scope.now() - pause,
                min_lines=lines,
                recent=RECENT_MEMORIES if only_recent else None,
            )
        failure: ProviderError | None = None
        for session in due:
            if session.session_id in _read_now:
                continue
            _read_now.add(session.session_id)
            try:
                result += await self._read_session(session)
            except ProviderError as error:
                if failure or isinstance(error, TokenQuotaError):
                    raise
                failure = error
                await self._count_failure(session, error, has_answered=result.calls > 0)
                result += ReconciliationResult(failed=1)
            else:
                failure = None
            finally:
                _read_now.discard(session.session_id)
        if failure and not result.calls:
            raise failure
        return result

    async def read_told_episodes(self, limit: int, *, ended_before: datetime) -> ReconciliationResult:
        """Let the model read up to `limit` episodes that were stored as a text and ended before a time.

        Raises TokenQuotaError, and ProviderError if the model fails twice in a row; what was applied remains.
        """
        scope, result = self.llm.scope, ReconciliationResult()
        async with scope.transaction() as tx:
            if await self._is_switched_off(tx):
                return result
            episodes = await queue.list_told_episodes(
                tx, agent_id=scope.agent_id, ended_before=ended_before, user_name=self._user_name, limit=limit
            )
        failure: ProviderError | None = None
        for line in episodes:
            try:
                result += await self._read_told_episode(line)
            except ProviderError as error:
                if failure or isinstance(error, TokenQuotaError):
                    raise
                failure = error
            else:
                failure = None
        return result

    async def _read_told_episode(self, line: NewLine) -> ReconciliationResult:
        """Read an episode that was stored as a text, unless another worker has read it.

        Raises ProviderError if the model fails.
        """
        batches = await self._build_batches([line]) if line.source == "person" else []
        read = await self._ask(batches[0]) if batches else None
        answer = await asyncio.to_thread(check_items, read.items, batches[0]) if read else None
        async with self.llm.scope.write() as (tx, ctx):
            if await queue.finish_told_episode(tx, line.memory_id, ctx=ctx) and read and answer:
                return await self._apply(tx, batches[0], read, answer)
        return ReconciliationResult()

    @property
    def _user_name(self) -> str:
        return self.user_names[0] if self.user_names else ""

    async def _find_threshold(self, tx: Tx) -> tuple[int, timedelta]:
        """Return after how many lines of users, or after which pause, the lines of an open session are read."""
        used, own = await self._count_share(tx, self.llm.scope.now() - SHARE_PERIOD)
        # where programs only report conversations, there are no other tokens
        is_low = own == used or own <= MAX_SHARE * used
        return (SOON_LINES, SOON_PAUSE) if is_low else (LATE_LINES, LATE_PAUSE)

    async def _count_share(self, tx: Tx, since: datetime) -> tuple[int, int]:
        """Return the tokens that the agent used since a time, and those of reconciling calls."""
        return await usage.count_share(tx, agent_id=self.llm.scope.agent_id, since=since, purpose=PURPOSE)

    async def _is_switched_off(self, tx: Tx) -> bool:
        scope = self.llm.scope
        return await proposal_log.is_switched_off(tx, model=self.llm.name, agent_id=scope.agent_id, now=scope.now())

    async def _read_session(self, session: DueSession) -> ReconciliationResult:
        """Read the new lines of a session batch by batch, each with what is known after the batch before."""
        result, scope = ReconciliationResult(), self.llm.scope
        while True:
            if self.parse:
                await self.parse()
            async with scope.transaction() as tx:
                unread = await queue.load_lines(tx, session, user_name=self._user_name, agent_id=scope.agent_id)
            read = await self._read_batch(session, unread)
            if read is None:
                return result
            following, counts = read
            result += counts
            if following is None:
                return result
            session = following

    async def _read_batch(
        self, session: DueSession, unread: UnreadLines
    ) -> tuple[DueSession | None, ReconciliationResult] | None:
        """Read the next batch of lines. Return the session from the position after it, and the counts.

        The session is None after an unreadable answer, which is left for another run. Return None if nothing is to be
        read.
        """
        if unread.last_position < session.first_position:
            return None
        new = [line for line in unread.lines if not line.is_read]
        batches = await self._build_batches(unread.lines) if any(one.source == "person" for one in new) else []
        if not batches:
            return await self._store(session, unread.last_position, None, None)
        batch = _halve(batches[0]) if session.failed_readings else batches[0]
        batch, read = cut_batch(batch, await self._ask(batch))
        position = _find_end(unread, batch if read.is_readable else batches[0])
        return await self._store(session, position, batch, read)

    async def _store(
        self, session: DueSession, position: int, batch: ReconcilingInput | None, read: ReadAnswer | None
    ) -> tuple[DueSession | None, ReconciliationResult] | None:
        """Apply an answer and mark its lines as read; return as `_read_batch`. An unreadable answer changes nothing.

        Return None if another worker has read the lines meanwhile.
        """
        # the local models take a while, and no transaction is open meanwhile
        answer = await asyncio.to_thread(check_items, read.items, batch) if batch and read else None
        async with self.llm.scope.write() as (tx, ctx):
            is_readable = read is None or read.is_readable
            if not is_readable and session.failed_readings + 1 < MAX_FAILED_READINGS:
                await queue.count_failed_reading(tx, session, agent_id=ctx.agent_id)
            elif not await queue.advance(tx, session, position, ctx=ctx):
                return None
            counts = ReconciliationResult()
            if batch and read and answer:
                counts = await self._apply(tx, batch, read, answer)
        moved = replace(session, first_position=position + 1, reconciled_position=position, failed_readings=0)
        return moved if is_readable else None, counts

    async def _build_batches(self, lines: Sequence[NewLine]) -> list[ReconcilingInput]:
        """Return the lines with the known items that they may change, divided for the context window of the model."""
        scope = self.llm.scope
        now = scope.now().astimezone(find_local_zone())
        known = await find_known_items(scope, lines, zone=now.tzinfo)
        async with scope.transaction() as tx:
            new = [line for line in lines if line.source == "person" and not line.is_read]
            drafts = await list_drafts(tx, new, agent_id=scope.agent_id)
            stored = await list_user_names(tx, scope)
        names = tuple(dict.fromkeys([*stored, *self.user_names]))  # a line before may say another one
        whole = ReconcilingInput(
            user_name=names[0] if names else "",
            aliases=names[1:],
            known=tuple(replace(item, drafted_by=drafts.get(item.item_id)) for item in known),
            lines=tuple(lines),
            now=now,
        )
        return split_batches(whole, window_tokens=await self.llm.find_window(), count_tokens=scope.count_tokens)

    async def _ask(self, batch: ReconcilingInput) -> ReadAnswer:
        """Let the model propose changes for a batch of lines; return its parsed answer."""
        prompt = render_prompt(batch)
        reply = await self.llm.ask(
            [ChatMessage("system", prompt.system), ChatMessage("user", prompt.user)],
            ReconcilingOutput,
            purpose=PURPOSE,
            max_tokens=estimate_answer(batch),
            timeout_seconds=TIMEOUT_SECONDS,
            is_usable=lambda answer: read_answer(answer).is_readable,
        )
        read = read_answer(reply.text if reply else "")
        # a model may also leave out the last bracket
        return replace(read, is_cut=read.is_cut and reply is not None and reply.finish == "length")

    async def _apply(
        self, tx: Tx, batch: ReconcilingInput, read: ReadAnswer, answer: CheckedAnswer
    ) -> ReconciliationResult:
        ctx = self.llm.scope.write_context("agent")
        context = ApplicationContext(ctx=ctx, user_names=answer.user_names, zone=batch.zone)
        applied = await apply_items(tx, [*answer.kept, *list_implied_items(batch, answer.kept)], context)
        malformed = read.malformed or int(not read.is_readable)
        await proposal_log.record_answer(tx, answer, model=self.llm.name, malformed=malformed, ctx=ctx)
        self._publish(applied)
        return ReconciliationResult(1, len(answer.kept), len(answer.dropped) + malformed)

    def _publish(self, applied: AppliedItems) -> None:
        if applied.changes:
            self.llm.scope.publish("lines.reconciled", {"changes": len(applied.changes)})

    async def _count_failure(self, session: DueSession, error: ProviderError, *, has_answered: bool) -> None:
        """Count a failed call, so that other sessions come first.

        Old lines of a session count as read if the model fails for them again and again, but answers for others: before
        in this run or, if it refuses these lines, within a day.
        """
        scope = self.llm.scope
        async with scope.write() as (tx, ctx):
            if isinstance(error, RefusedRequestError | ContextWindowError):
                since = ctx.now - GIVE_UP_AFTER
                has_answered = has_answered or (await self._count_share(tx, since))[1] > 0
            is_old = session.recorded_at < ctx.now - GIVE_UP_AFTER and session.failed_readings + 1 >= MAX_FAILED_CALLS
            if has_answered and is_old:
                unread = await queue.load_lines(tx, session, user_name=self._user_name, agent_id=scope.agent_id)
                await queue.advance(tx, session, unread.last_position, ctx=ctx)
            else:
                await queue.count_failed_reading(tx, session, agent_id=ctx.agent_id)


def _halve(batch: ReconcilingInput) -> ReconcilingInput:
    """Return a batch with half of its new lines, for a second try."""
    new = [line for line in batch.lines if not line.is_read]
    dropped = {line.number for line in new[max(1, len(new) // 2) :]}
    return replace(batch, lines=tuple(line for line in batch.lines if line.number not in dropped))


def cut_batch(batch: ReconcilingInput, read: ReadAnswer) -> tuple[ReconcilingInput, ReadAnswer]:
    """Return the batch and the answer without the part that is lost because the answer was cut off.

    The lines of that part are read again. If a cut answer is about one line only, its complete items count.
    """
    if not (read.is_cut and read.items):
        return batch, read
    first = min(line.number for line in batch.lines if line.source == "person" and not line.is_read)
    last = max(item.line for item in read.items)
    if last < first:
        return batch, replace(read, is_readable=False)
    end = last - 1 if last > first else last
    items = [item for item in read.items if item.line <= end]
    return replace(batch, lines=batch.lines[:end]), replace(read, items=items)


def _find_end(unread: UnreadLines, batch: ReconcilingInput) -> int:
    """Return the position up to which a batch reads: to the last loaded message if it has the last line."""
    count = sum(line.is_read for line in unread.lines) + sum(not line.is_read for line in batch.lines)
    return unread.last_position if count >= len(unread.lines) else unread.positions[count - 1]
