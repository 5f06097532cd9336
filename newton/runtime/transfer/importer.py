"""The importer of memories. It stores each item of a source as a memory; a repeated import stores nothing twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.wills.carried_wills import carry_out
from newton.brain import decisions, ledger
from newton.brain.calibration import snapshots
from newton.brain.decision_codec import NewDecision
from newton.brain.decisions import DecisionLinkDraft
from newton.brain.hash_chain import ChainHeadFiles
from newton.concurrency import run_in_thread, task_group
from newton.content.skills import SkillFile
from newton.db.pool import Tx
from newton.dialogue import session_close, sessions, veils
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import ConflictError, InputError, NewtonError
from newton.heart import censors, documents, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.chunking import split_passages
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_changes
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.episodes import NewEpisode
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import tombstones
from newton.memory.memory import Trust
from newton.memory.redaction.tally import add_redactions, count_redactions
from newton.memory.vectors import DrainControl, EmbeddingOutbox
from newton.runtime.transfer.import_lines import DocumentItem, EventItem, ImportItem, MessageItem
from newton.runtime.transfer.import_source import ImportReport, ImportSource, RejectedEntry, SourceEntry


async def write_items(
    tx: Tx, items: Sequence[ImportItem], *, ctx: LifecycleContext, sizes: SummarySizes = DEFAULT_SIZES
) -> int:
    """Store the items of an import in the caller's transaction, and return the number of items that are new.

    Raises InputError or ConflictError for an item that cannot be stored.
    """
    new = 0
    for item_type, write in WRITERS.items():
        if of_type := [item for item in items if isinstance(item, item_type)]:
            new += await write(tx, of_type, ctx, sizes)
    return new


async def _write_messages(tx: Tx, items: Sequence[MessageItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    new, session = 0, attrgetter("session")
    for ref, group in groupby(sorted(items, key=session), key=session):
        session_id = await _get_session(tx, ref, ctx)
        messages = [replace(item.message, is_retold=True) for item in group]
        stored = await sessions.append(tx, messages, session_id=session_id, ctx=ctx, sizes=sizes)
        await carry_out(tx, stored, can_ask=False, ctx=ctx)
        new += len(stored)
    return new


async def _write_facts(tx: Tx, facts: Sequence[NewFact], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    texts, refs = [fact.content for fact in facts], [fact.ref for fact in facts]
    buried = await tombstones.find_buried(tx, texts, refs, agent_id=ctx.agent_id)
    facts = [fact for fact in facts if fact.ref not in buried and fact.content not in buried]
    return sum(status == "new" for status in await fact_store.add_facts(tx, facts, ctx=ctx))


async def _write_decisions(tx: Tx, items: Sequence[NewDecision], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    numbered = await ledger.number_versions(tx, items, ctx=ctx)
    return sum(result.is_new for result in await decisions.record(tx, numbered, ctx=ctx))


async def _write_procedures(tx: Tx, skills: Sequence[SkillFile], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    added = [await procedures.add_procedure(tx, skill, ctx=ctx) for skill in skills]
    return sum(one is not None for one in added)


async def _write_censors(tx: Tx, rules: Sequence[CensorRule], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    return len(await censors.add_rules(tx, rules, ctx=ctx))


async def _write_events(tx: Tx, items: Sequence[EventItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    names = sorted({item.session for item in items if item.session})
    ids = {name: await _get_session(tx, name, ctx) for name in names}
    events = [
        NewEvent(ref=item.ref, event=item.event, session_id=ids[item.session] if item.session else None)
        for item in items
    ]
    return await event_store.record_events(tx, events, ctx=ctx)


async def _write_documents(tx: Tx, items: Sequence[DocumentItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    new = 0
    for item in items:
        source = DocumentSource(ref=item.ref, title=item.title, format=item.format)
        chunks = split_passages(
            item.content.sections, count_tokens=ctx.count_tokens, size=sizes.chunk_tokens, overlap=sizes.overlap_tokens
        )
        result = await documents.replace_passages(tx, source, chunks, ctx=ctx)
        new += bool(result.new or result.replaced)
    return new


async def _get_session(tx: Tx, ref: str, ctx: LifecycleContext) -> UUID:
    return await sessions.ensure_session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)


ItemWriter = Callable[[Tx, Sequence[Any], LifecycleContext, SummarySizes], Awaitable[int]]
# Applied in this order: entities before their relations.
WRITERS: Mapping[type, ItemWriter] = {
    MessageItem: _write_messages,
    NewFact: _write_facts,
    NewEpisode: lambda tx, items, ctx, sizes: episodes.add_episodes(tx, items, ctx=ctx),
    NewDecision: _write_decisions,
    DecisionLinkDraft: lambda tx, items, ctx, sizes: decisions.link_by_ref(tx, items, ctx=ctx),
    SkillFile: _write_procedures,
    CensorRule: _write_censors,
    EntityDeclaration: lambda tx, items, ctx, sizes: entity_changes.declare_entities(tx, items, ctx=ctx),
    RelationDeclaration: lambda tx, items, ctx, sizes: entity_changes.declare_relations(tx, items, ctx=ctx),
    EventItem: _write_events,
    DocumentItem: _write_documents,
}


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

    `outbox` embeds the memories; None without an embedding model. `domains` are the subject domains that the frames
    (kinds of input) define; a censor (a rule that blocks or warns) for another domain is rejected.
    """

    scope: AgentScope
    outbox: EmbeddingOutbox | None
    chain_heads: ChainHeadFiles
    domains: frozenset[str]
    sizes: SummarySizes = DEFAULT_SIZES

    async def run(self, source: ImportSource, *, progress: ProgressCallback = lambda lines: None) -> ImportReport:
        """Import each valid item that is not stored yet, and return the counts.

        `progress` is called repeatedly with the number of items processed since its last call.
        """
        report, signal = ImportReport(), EmbedSignal()
        async with task_group() as tasks:
            tasks.create_task(self._drain_outbox(report, signal, progress))
            await self._write_source(source, report, signal, progress)
        return report

    async def _write_source(
        self, source: ImportSource, report: ImportReport, signal: EmbedSignal, progress: ProgressCallback
    ) -> None:
        """Write the items batch by batch, and signal each; then close the sessions that have new messages."""
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
        """Write the batch in one transaction, and add its counts to the report.

        If an item is invalid, write the halves of the batch separately, until only this item is left out and reported.
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
                held = await veils.read_session_will(tx, session_id=session_id, agent_id=ctx.agent_id)
                report.undecided += [ref] if held.choices else []
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
