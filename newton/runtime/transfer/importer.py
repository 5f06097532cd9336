"""The importer of memories. It stores each item of a source as a memory; a repeated import stores nothing twice."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from newton.agent.scope import AgentScope
from newton.brain import ledger
from newton.brain.calibration import snapshots
from newton.brain.chain_heads import ChainHeadFiles
from newton.brain.codec import NewDecision
from newton.brain.decisions import DecisionLinkDraft
from newton.concurrency import run_in_thread, task_group
from newton.db.pool import Tx
from newton.dialogue import session_close, sessions
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import ConflictError, InputError, NewtonError
from newton.heart import censors
from newton.heart.censors import CensorRule
from newton.memory.memory import Trust
from newton.memory.outbox import DrainControl, EmbeddingOutbox
from newton.memory.redaction.tally import add_redactions, count_redactions
from newton.runtime.transfer.import_lines import ImportItem, MessageItem
from newton.runtime.transfer.import_source import ImportReport, ImportSource, RejectedEntry, SourceEntry
from newton.runtime.transfer.writers import write_items

BATCH_LINES, BATCH_CHARACTERS = 100, 500_000  # limits of one transaction, after which progress is reported
ORIGIN = "import"

PlacedItem = tuple[str, ImportItem]  # the place of an entry, and its item
ProgressCallback = Callable[[int], None]


@dataclass(slots=True)
class EmbedSignal:
    """The signals of the task that writes memories to the task that embeds them: new work, and the end of writing."""

    work_available: asyncio.Event = field(default_factory=asyncio.Event)
    is_finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryImporter:
    """An importer for one agent. Each batch is one transaction, so a repeated import completes an interrupted one.

    `domains` are the subject domains that the frames define; a censor with another domain is rejected.
    """

    scope: AgentScope
    outbox: EmbeddingOutbox | None
    chain_heads: ChainHeadFiles
    domains: frozenset[str]
    sizes: SummarySizes = DEFAULT_SIZES

    async def run(self, source: ImportSource, *, progress: ProgressCallback = lambda lines: None) -> ImportReport:
        """Import each valid item that is not stored yet, and return the counts.

        `progress` is called after each step with the number of items that the step has processed.
        """
        report, signal = ImportReport(), EmbedSignal()
        async with task_group() as tasks:
            tasks.create_task(self._drain_outbox(report, signal, progress))
            await self._write_source(source, report, signal, progress)
        return report

    async def _write_source(
        self, source: ImportSource, report: ImportReport, signal: EmbedSignal, progress: ProgressCallback
    ) -> None:
        session_refs, has_decisions, scope = set[str](), False, self.scope
        batches = _batches(source.read())
        # a large file is parsed before its first item
        while entries := await run_in_thread(partial(next, batches, None), progress):
            batch = [(place, self._validate_domain(item)) for place, item in entries]
            valid = [(place, item) for place, item in batch if not isinstance(item, NewtonError)]
            report.rejections += [RejectedEntry(at, str(item)) for at, item in batch if isinstance(item, NewtonError)]
            session_refs |= {item.session for _, item in valid if isinstance(item, MessageItem)}
            has_decisions = has_decisions or any(isinstance(item, NewDecision) for _, item in valid)
            await self._write_batch(valid, report, source.trust)
            signal.work_available.set()
            progress(len(batch))
        await self._close_sessions(session_refs, report, progress)
        async with scope.transaction() as tx:
            if has_decisions:
                await snapshots.take_snapshot(
                    tx, agent_id=scope.agent_id, now=scope.now(), count_tokens=scope.count_tokens
                )
            if report.new or report.episodes:
                counts = {"new": report.new, "known": report.unchanged, "refused": len(report.rejections)}
                scope.publish("import.completed", counts)
        signal.is_finished = True
        signal.work_available.set()

    def _validate_domain(self, item: ImportItem | NewtonError) -> ImportItem | NewtonError:
        """Return the item, or an InputError if it is a censor for a domain that no frame defines."""
        try:
            if isinstance(item, CensorRule):
                censors.validate_domain(item, self.domains)
        except InputError as error:
            return error
        return item

    async def _write_batch(self, batch: Sequence[PlacedItem], report: ImportReport, trust: Trust) -> None:
        """Write the batch in one transaction. If an item is invalid, write the halves of the batch separately.

        This is repeated until only the invalid item is left out and reported.
        """
        items = [item for _, item in batch]
        await self.scope.reserve_storage(*map(repr, items))
        try:
            new = await self.scope.db.run_with_retry(
                self.scope.agent_id, lambda tx: self._write_items(tx, items, trust)
            )
        except (InputError, ConflictError) as error:
            if len(batch) == 1:
                report.rejections.append(RejectedEntry(batch[0][0], str(error)))
                return
            half = len(batch) // 2
            await self._write_batch(batch[:half], report, trust)
            await self._write_batch(batch[half:], report, trust)
            return
        await self._record_chain_head(batch)
        report.new += new
        report.unchanged += len(batch) - new
        report.redacted = add_redactions(report.redacted, count_redactions(*map(repr, items)))  # of any field

    async def _record_chain_head(self, batch: Sequence[PlacedItem]) -> None:
        """Save the last hash of the decision log if the batch contains decisions or their links."""
        if any(isinstance(item, NewDecision | DecisionLinkDraft) for _, item in batch):
            saved = await asyncio.to_thread(self.chain_heads.load_or_none, self.scope.agent_id)
            async with self.scope.transaction() as tx:
                head = await ledger.get_extended_head(tx, saved, agent_id=self.scope.agent_id)
            await asyncio.to_thread(self.chain_heads.save, self.scope.agent_id, head)

    async def _write_items(self, tx: Tx, items: Sequence[ImportItem], trust: Trust) -> int:
        ctx = self.scope.at(ORIGIN).write_context(trust)
        new = await write_items(tx, items, ctx=ctx, sizes=self.sizes)
        if new:
            self.scope.publish("import.batch_committed", {"new": new, "unchanged": len(items) - new})
        return new

    async def _close_sessions(self, session_refs: set[str], report: ImportReport, progress: ProgressCallback) -> None:
        """Close each session named in the import file, so that its messages become episodes."""
        ctx = self.scope.at(ORIGIN).write_context("agent")
        for ref in sorted(session_refs):
            async with self.scope.transaction() as tx:
                session_id = await sessions.ensure_session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)
                report.episodes += await session_close.close_session(tx, session_id=session_id, ctx=ctx)
            progress(0)

    async def _drain_outbox(self, report: ImportReport, signal: EmbedSignal, progress: ProgressCallback) -> None:
        """Embed new memories while another task writes, until none is left or the embedder fails."""
        while self.outbox is not None and report.embedder_error is None:
            is_last = signal.is_finished
            drained = await self.outbox.drain(control=DrainControl(on_progress=lambda count: progress(0)))
            report.embedded += drained.embedded
            report.embedder_error = drained.stopped_by
            if is_last:
                break
            await signal.work_available.wait()
            signal.work_available.clear()


def _batches(entries: Iterator[SourceEntry]) -> Iterator[list[tuple[str, ImportItem | NewtonError]]]:
    batch, room = list[tuple[str, ImportItem | NewtonError]](), BATCH_CHARACTERS
    for place, length, item in entries:
        room -= length
        if batch and (len(batch) == BATCH_LINES or room < 0):
            yield batch
            batch, room = [], BATCH_CHARACTERS - length
        batch.append((place, item))
    if batch:
        yield batch
