"""`import`: a file becomes memories, each line once; repeating it changes nothing."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.brain import ledger, snapshots
from newton.brain.headnote import HeadNotes
from newton.brain.stating import Intent
from newton.concurrency import together
from newton.db.pool import Tx
from newton.dialogue import closing, sessions
from newton.dialogue.condensing import USUAL, Sizes
from newton.errors import ConflictError, InputError, NewtonError
from newton.memory.outbox import Outbox
from newton.runtime.transfer.given import Item, Said
from newton.runtime.transfer.keeping import keep
from newton.runtime.transfer.lines import read

# A unit of work takes so many lines, or so many characters of them if that is less.
BATCH = 100
BATCH_CHARACTERS = 4_000_000
ORIGIN = "import"

Numbered = tuple[int, Item]
Read = tuple[int, Item | NewtonError]
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not taken, and why."""

    line: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Report:
    """What an import did. `down` is the embedder's last word when vectors could not be made."""

    new: int = 0
    known: int = 0
    episodes: int = 0
    embedded: int = 0
    refused: list[Refusal] = field(default_factory=list[Refusal])
    down: str | None = None


@dataclass(slots=True)
class Pace:
    """How the writer tells the embedder that there is more to do, and when that was all."""

    more: asyncio.Event = field(default_factory=asyncio.Event)
    finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Imports into one agent. Each batch commits whole; a run that was killed is finished by running it again."""

    scope: AgentScope
    outbox: Outbox | None
    notes: HeadNotes
    sizes: Sizes = USUAL

    async def run(self, path: Path, *, progress: Progress = lambda lines: None) -> Report:
        """Takes every valid line of the file once; `progress` is told how many lines each step finished, which may be
        none."""
        report, pace = Report(), Pace()
        async with together() as tasks:
            tasks.create_task(self._embed(report, pace, progress))
            await self._write(path, report, pace, progress)
        return report

    async def _write(self, path: Path, report: Report, pace: Pace, progress: Progress) -> None:
        touched: set[str] = set()
        decided = False
        for batch in _batches(read(path)):
            good = [(number, item) for number, item in batch if not isinstance(item, NewtonError)]
            report.refused += [Refusal(n, str(item)) for n, item in batch if isinstance(item, NewtonError)]
            touched |= {item.session for _, item in good if isinstance(item, Said)}
            decided = decided or any(isinstance(item, Intent) for _, item in good)
            await self._take(good, report)
            pace.more.set()
            progress(len(batch))
        await self._close(touched, report, progress)
        async with self.scope.transaction() as tx:
            if decided:
                await snapshots.take(
                    tx, agent_id=self.scope.agent_id, now=self.scope.now(), count=self.scope.count_tokens
                )
            if report.new or report.episodes:
                about = {"new": report.new, "known": report.known, "refused": len(report.refused)}
                self.scope.publish("import.finished", about)
        pace.finished = True
        pace.more.set()

    async def _take(self, batch: Sequence[Numbered], report: Report) -> None:
        """The batch in one unit of work; if a line of it is refused, each half in its own, until only that line is."""
        try:
            new = await self.scope.db.retried(
                self.scope.agent_id, lambda tx: self._keep(tx, [item for _, item in batch])
            )
        except (InputError, ConflictError) as error:
            if len(batch) == 1:
                report.refused.append(Refusal(batch[0][0], str(error)))
                return
            half = len(batch) // 2
            await self._take(batch[:half], report)
            await self._take(batch[half:], report)
            return
        await self._note(batch)
        report.new += new
        report.known += len(batch) - new

    async def _note(self, batch: Sequence[Numbered]) -> None:
        """Where the ledger ends now, if decisions came in."""
        if any(isinstance(item, Intent) for _, item in batch):
            seen = await asyncio.to_thread(self.notes.last, self.scope.agent_id)
            async with self.scope.transaction() as tx:
                head = await ledger.grown(tx, seen, agent_id=self.scope.agent_id)
            await asyncio.to_thread(self.notes.note, self.scope.agent_id, head)

    async def _keep(self, tx: Tx, items: Sequence[Item]) -> int:
        ctx = self.scope.at(ORIGIN).write_context("user")
        new = await keep(tx, items, ctx=ctx, sizes=self.sizes)
        if new:
            self.scope.publish("import.kept", {"new": new, "known": len(items) - new})
        return new

    async def _close(self, touched: set[str], report: Report, progress: Progress) -> None:
        """Every session of the file has been said to its end, as far as the file knows."""
        ctx = self.scope.at(ORIGIN).write_context("agent")
        for ref in sorted(touched):
            async with self.scope.transaction() as tx:
                session_id = await sessions.session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)
                report.episodes += await closing.close(tx, session_id=session_id, ctx=ctx)
            progress(0)

    async def _embed(self, report: Report, pace: Pace, progress: Progress) -> None:
        """Follows the writer and empties the outbox until both are done, or the embedder is down."""
        while self.outbox is not None and report.down is None:
            last = pace.finished
            drained = await self.outbox.drain(seen=lambda landed: progress(0))
            report.embedded += drained.embedded
            report.down = drained.down
            if last:
                break
            await pace.more.wait()
            pace.more.clear()


def _batches(lines: Iterator[tuple[int, int, Item | NewtonError]]) -> Iterator[list[Read]]:
    batch: list[Read] = []
    room = BATCH_CHARACTERS
    for number, length, item in lines:
        room -= length
        if batch and (len(batch) == BATCH or room < 0):
            yield batch
            batch, room = [], BATCH_CHARACTERS - length
        batch.append((number, item))
    if batch:
        yield batch
