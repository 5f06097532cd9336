"""Making conversations shorter: asks the strategies, has the blocks told, and keeps what came of it, or nothing."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from newton.agent.asking import Asking
from newton.clock import Clock, stopwatch
from newton.db.pool import Database, in_unit_of_work
from newton.dialogue import entries, log, tasks
from newton.dialogue.compaction import prompting, telling
from newton.dialogue.compaction.events import Completed, Event, Failed, Progressed, Started
from newton.dialogue.compaction.prompting import Told
from newton.dialogue.compaction.strategies import Block, Preset, Sight, Strategy, Threshold, allowed
from newton.dialogue.compaction.telling import Account, Part
from newton.dialogue.entries import Run
from newton.dialogue.log import Read
from newton.dialogue.view import MESSAGE_TOKENS, Entry, Shown, cost, covered
from newton.errors import NewtonError, ProviderError
from newton.ids import new_id
from newton.memory.hygiene import mended
from newton.memory.representations import Count

HOLD_SECONDS = 120.0
TRIES = 3  # failures of the model in a row, after which it is not asked any more
ANSWER = 2  # times the tokens of a block that a model may answer with: the form around the words costs too
ROUNDS = 4  # of one strategy in a row, as long as each brings something


@dataclass(slots=True)
class Breaker:
    """Counts the failures of a model in a row; with too many it is left alone until the process ends."""

    failures: int = 0

    @property
    def open(self) -> bool:
        return self.failures >= TRIES

    def note(self, *, failed: bool) -> None:
        self.failures = self.failures + 1 if failed else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """For one agent. Without a model, or when it fails, accounts are put together from the words themselves."""

    agent_id: UUID
    db: Database
    clock: Clock
    count: Count
    preset: Preset
    model: Asking | None = None
    tell: Callable[[Event], None] = lambda event: None
    breaker: Breaker = field(default_factory=Breaker)

    async def view(self, session_id: UUID, *, most: int) -> Sequence[Shown]:
        """The view of a session, made shorter first when a strategy wants that. `most` is what it may cost.

        It may cost more: then nothing more can be told shorter. One process at a time makes a session shorter; another
        is given the view as it is.
        """
        assert not in_unit_of_work()
        read = await self._folded(session_id)
        if not any(strategy.plan(self._sight(read, most)) for strategy in self.preset.strategies):
            return read.view
        holder = new_id()
        async with self.db.work(self.agent_id) as tx:
            held = await entries.hold(tx, holder, agent_id=self.agent_id, session_id=session_id, seconds=HOLD_SECONDS)
        if not held:
            return read.view
        try:
            return await self._compacted(session_id, read, most)
        finally:
            async with self.db.work(self.agent_id) as tx:
                await entries.release(tx, holder, agent_id=self.agent_id, session_id=session_id)

    async def preview(self, session_id: UUID, *, most: int) -> Sequence[Shown]:
        """What `view` would come to without a model. Nothing is written, and nobody is told."""
        alone = replace(self, model=None, tell=_unheard)
        read = await self._read(session_id)
        for strategy in self.preset.strategies:
            for _ in range(ROUNDS):
                blocks = strategy.plan(self._sight(read, most))
                made = await alone._told(strategy, blocks, read, session_id, most)
                if not made:
                    break
                read = replace(read, view=covered(read.view, made))
        return read.view

    async def _compacted(self, session_id: UUID, read: Read, most: int) -> Sequence[Shown]:
        for strategy in self.preset.strategies:
            for _ in range(ROUNDS):
                blocks = strategy.plan(self._sight(read, most))
                changed = await self._ran(strategy, blocks, read, session_id, most) if blocks else None
                if changed is None:
                    break
                read = changed
        return read.view

    async def _ran(
        self, strategy: Strategy, blocks: Sequence[Block], read: Read, session_id: UUID, most: int
    ) -> Read | None:
        """The session as it is after the strategy; None when it has changed nothing."""
        started, before = stopwatch(), cost(read.view)
        room = self._sight(read, most).most
        self.tell(Started(strategy=strategy.name, current=before, max=room, time=self.clock.now()))
        try:
            made = await self._told(strategy, blocks, read, session_id, most)
            async with self.db.work(self.agent_id) as tx:
                kept = made and await entries.keep(
                    tx, made, agent_id=self.agent_id, session_id=session_id, seen=read.seen
                )
        except NewtonError as error:
            await self._end(strategy, session_id, (before, before), stopwatch() - started, str(error))
            return None
        if not kept:
            why = "the session was changed meanwhile" if made else "nothing came out shorter"
            await self._end(strategy, session_id, (before, before), stopwatch() - started, why)
            return None
        changed = await self._read(session_id)
        after = cost(changed.view)
        sight = self._sight(changed, most)
        full = isinstance(strategy, Threshold) and after >= strategy.share * sight.most
        exhausted = full and not strategy.plan(sight)
        await self._end(strategy, session_id, (before, after), stopwatch() - started, None, exhausted=exhausted)
        return changed

    async def _told(
        self, strategy: Strategy, blocks: Sequence[Block], read: Read, session_id: UUID, most: int
    ) -> list[Entry]:
        """The entries that are to stand in the place of the blocks, but for those that came out no shorter."""
        sight, made, saved = self._sight(read, most), list[Entry](), 0
        for number, block in enumerate(blocks, start=1):
            if allowed(block, sight) is None and (entry := await self._entry(strategy, block, session_id)):
                made.append(entry)
                saved += block.tokens - entry.tokens - MESSAGE_TOKENS
            self.tell(
                Progressed(
                    strategy=strategy.name,
                    processed=number,
                    total=len(blocks),
                    saved=saved,
                    time=self.clock.now(),
                )
            )
        return made

    async def _entry(self, strategy: Strategy, block: Block, session_id: UUID) -> Entry | None:
        items = await self._in_full(block, session_id)
        text, model = (self._masked(block, items), None) if block.kind == "mask" else await self._account(block, items)
        tokens = self.count(text)
        if tokens + MESSAGE_TOKENS >= block.tokens:
            return None
        return Entry(
            entry_id=new_id(),
            kind=block.kind,
            first=block.first,
            last=block.last,
            text=text,
            tokens=tokens,
            before=block.tokens,
            strategy=strategy.name,
            prompt=telling.RULES if model is None else prompting.VERSION,
            model=model,
            made_at=self.clock.now(),
        )

    def _masked(self, block: Block, items: Sequence[Shown]) -> str:
        return telling.masked(items[0]._replace(tokens=block.tokens), most=block.most, count=self.count)

    async def _in_full(self, block: Block, session_id: UUID) -> Sequence[Shown]:
        """The block's messages, with the words of those that are masked."""
        masked = [item for item in block.items if item.kind == "mask"]
        if not masked:
            return block.items
        async with self.db.work(self.agent_id) as tx:
            parts = [log.Stretch(item.first, item.last) for item in masked]
            rows = await log.lines(tx, parts, agent_id=self.agent_id, session_id=session_id)
        words = {placed.position: placed.line.content for placed in rows}
        return [item._replace(text=words[item.first]) if item.kind == "mask" else item for item in block.items]

    async def _account(self, block: Block, items: Sequence[Shown]) -> tuple[str, str | None]:
        """What the block comes to, and the model that told it."""
        found = telling.account(items)
        told = await self._asked(block, items)
        name = self.model.name if self.model and told else None
        account = _joined(told, found) if told else found
        return telling.written(block.kind, account, items, most=block.most, count=self.count), name

    async def _asked(self, block: Block, items: Sequence[Shown]) -> Told | None:
        if self.model is None or self.breaker.open:
            return None
        prompt = prompting.prompt(block.kind, items, fence=f"=== {secrets.token_hex(8)} ===")
        try:
            told = await self.model.fill(prompt, Told, purpose="compact", max_tokens=block.most * ANSWER)
        except ProviderError:
            told = None
        empty = told is None or not any(told.items(part) for part in telling.PARTS)
        self.breaker.note(failed=empty)
        return None if empty else told

    async def _folded(self, session_id: UUID) -> Read:
        """The session, with those tasks folded that could not be when they ended."""
        now = self.clock.now()
        async with self.db.work(self.agent_id) as tx:
            return await tasks.folded(tx, session_id=session_id, agent_id=self.agent_id, now=now, count=self.count)

    async def _read(self, session_id: UUID) -> Read:
        async with self.db.work(self.agent_id) as tx:
            return await log.read(tx, agent_id=self.agent_id, session_id=session_id)

    def _sight(self, read: Read, most: int) -> Sight:
        return Sight(read.view, min(most, self.preset.most), read.pinned)

    async def _end(
        self,
        strategy: Strategy,
        session_id: UUID,
        tokens: tuple[int, int],
        duration_ms: float,
        error: str | None,
        *,
        exhausted: bool = False,
    ) -> None:
        before, after = tokens
        at = self.clock.now()
        run = Run(strategy.name, at, duration_ms, before, after, error)
        async with self.db.work(self.agent_id) as tx:
            await entries.record(tx, run, agent_id=self.agent_id, session_id=session_id)
        if error:
            self.tell(Failed(strategy=strategy.name, error=error, time=at))
            return
        self.tell(
            Completed(
                strategy=strategy.name,
                saved=before - after,
                new_count=after,
                duration_ms=duration_ms,
                time=at,
                exhausted=exhausted,
            )
        )


def _unheard(event: Event) -> None:
    """What is only tried is told to nobody."""


def _joined(told: Told, found: Account) -> Account:
    """A model's items, and of what was found those parts that have to be exact: artifacts and errors. Pure."""
    joined = Account()
    for part in telling.PARTS:
        for words in told.items(part):
            joined.note(part, mended(words))
    exact: tuple[Part, ...] = ("thing", "failed")
    for part in exact:
        for words in found.items(part):
            joined.note(part, words)
    return joined
