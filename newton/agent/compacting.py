"""Making conversations shorter: asks the strategies, has the blocks told, and keeps what came of it as it comes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from newton.agent.accounts import Accounts, Allowance, Breaker, joined
from newton.agent.asking import Asking
from newton.agent.scope import AgentScope
from newton.clock import stopwatch
from newton.db.pool import in_unit_of_work
from newton.dialogue import entries, holding, log, tasks
from newton.dialogue.compaction import prompting, telling
from newton.dialogue.compaction.events import Completed, Event, Failed, Progressed, Started
from newton.dialogue.compaction.strategies import Block, Preset, Sight, Strategy, Threshold, allowed
from newton.dialogue.entries import Run
from newton.dialogue.log import Read
from newton.dialogue.view import MESSAGE_TOKENS, Entry, Shown, cost, covered, outermost
from newton.errors import ConflictError, NewtonError
from newton.ids import new_id

HOLD_SECONDS = 120.0  # much longer than a model may take, and begun anew with all that is kept
ROUNDS = 4  # of one strategy in a row, as long as each brings something


@dataclass(slots=True, kw_only=True)
class _Work:
    """One making shorter: of which session, in how many tokens, by whom, what was seen of it, what was kept, and what
    the model may still do."""

    session_id: UUID
    most: int
    holder: UUID
    read: Read
    kept: int = 0
    allowance: Allowance = field(default_factory=Allowance)

    def about(self, made: Sequence[Entry]) -> dict[str, object]:
        return {"session_id": str(self.session_id), "entries": len(made)}

    def note(self, made: Sequence[Entry]) -> None:
        """These are kept."""
        seen = self.read.seen
        self.read = replace(self.read, seen=seen._replace(entries=outermost([*seen.entries, *made])))
        self.kept += len(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """For one agent. Without a model, or when it fails, accounts are put together from the words themselves."""

    scope: AgentScope
    preset: Preset
    model: Asking | None = None
    window: int = 128_000
    tell: Callable[[Event], None] = lambda event: None
    breaker: Breaker = field(default_factory=Breaker)
    allowance: Callable[[], Allowance] = Allowance

    async def view(self, session_id: UUID, *, most: int) -> Sequence[Shown]:
        """The view of a session, made shorter first when a strategy wants that. `most` is what it may cost.

        It may cost more: then nothing more can be told shorter. One process at a time makes a session shorter; another
        is given the view as it is.
        """
        assert not in_unit_of_work()
        read = await self._folded(session_id)
        if not any(strategy.plan(self._sight(read, most)) for strategy in self.preset.strategies):
            return read.view
        holder, of = new_id(), {"agent_id": self.scope.agent_id, "session_id": session_id}
        async with self.scope.transaction() as tx:
            held = await holding.hold(tx, holder, "compaction", **of, seconds=HOLD_SECONDS)
        if not held:
            return read.view
        work = _Work(session_id=session_id, most=most, holder=holder, read=read, allowance=self.allowance())
        try:
            await self._compacted(work)
        finally:
            async with self.scope.transaction() as tx:
                await holding.release(tx, holder, "compaction", **of)
        return work.read.view

    async def preview(self, session_id: UUID, *, most: int) -> Sequence[Shown]:
        """What `view` would come to without a model. Nothing is written, and nobody is told."""
        alone, none = replace(self, model=None, tell=_unheard), Allowance(calls=0)
        read = await self._read(session_id)
        for strategy in self.preset.strategies:
            for _ in range(ROUNDS):
                sight = self._sight(read, most)
                blocks = [block for block in strategy.plan(sight) if allowed(block, sight) is None]
                told = [await alone._entry(strategy, block, session_id, none) for block in blocks]
                if not any(told):
                    break
                read = replace(read, view=covered(read.view, [entry for entry in told if entry]))
        return read.view

    async def _compacted(self, work: _Work) -> None:
        for strategy in self.preset.strategies:
            for _ in range(ROUNDS):
                blocks = strategy.plan(self._sight(work.read, work.most))
                if not blocks or not await self._ran(strategy, blocks, work):
                    break

    async def _ran(self, strategy: Strategy, blocks: Sequence[Block], work: _Work) -> bool:
        """Whether the strategy came to its end and has changed something."""
        started, before = stopwatch(), cost(work.read.view)
        room = self._sight(work.read, work.most).most
        self.tell(Started(strategy=strategy.name, current=before, max=room, time=self.scope.now()))
        work.kept, why, after, exhausted = 0, None, before, False
        try:
            await self._told(strategy, blocks, work)
        except NewtonError as error:
            why = error.what if isinstance(error, ConflictError) else str(error)
        if work.kept:
            work.read = await self._read(work.session_id)
            after = cost(work.read.view)
            sight = self._sight(work.read, work.most)
            full = isinstance(strategy, Threshold) and after >= strategy.share * sight.most
            exhausted = full and not strategy.plan(sight)
        elif why is None:
            why = "nothing came out shorter"
        run = Run(strategy.name, self.scope.now(), stopwatch() - started, before, after, why)
        await self._end(run, work.session_id, exhausted=exhausted)
        return why is None

    async def _told(self, strategy: Strategy, blocks: Sequence[Block], work: _Work) -> None:
        """Keeps the entries that are to stand in the place of the blocks, but for those that came out no shorter: all
        at once, or up to one that a model was paid for as soon as it is there.

        Raises ConflictError when the session was changed meanwhile; what was kept until then stays.
        """
        sight, made, saved = self._sight(work.read, work.most), list[Entry](), 0
        asked = work.allowance.for_model(blocks)
        for number, block in enumerate(blocks, start=1):
            allowance = work.allowance if block.first in asked else Allowance(calls=0)
            entry = allowed(block, sight) is None and await self._entry(strategy, block, work.session_id, allowance)
            if entry:
                made.append(entry)
                saved += block.tokens - entry.tokens - MESSAGE_TOKENS
            if made and ((entry and entry.model) or number == len(blocks)):
                await self._keep(made, work)
                made = []
            self.tell(
                Progressed(
                    strategy=strategy.name,
                    processed=number,
                    total=len(blocks),
                    saved=saved,
                    time=self.scope.now(),
                )
            )

    async def _keep(self, made: Sequence[Entry], work: _Work) -> None:
        """The right to make the session shorter is held as long again from then on."""
        where = {"agent_id": self.scope.agent_id, "session_id": work.session_id}
        async with self.scope.transaction() as tx:
            held = await holding.hold(tx, work.holder, "compaction", **where, seconds=HOLD_SECONDS)
            if not held or not await entries.keep(tx, made, **where, seen=work.read.seen):
                raise ConflictError("the session was changed meanwhile", hint="It is made shorter the next time.")
            self.scope.publish("session.compacted", work.about(made))
        work.note(made)

    async def _entry(self, strategy: Strategy, block: Block, session_id: UUID, allowance: Allowance) -> Entry | None:
        items = await self._in_full(block, session_id)
        if block.kind == "mask":
            text, model = self._masked(block, items), None
        else:
            text, model = await self._account(strategy, block, items, allowance)
        tokens = self.scope.count_tokens(text)
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
            made_at=self.scope.now(),
        )

    def _masked(self, block: Block, items: Sequence[Shown]) -> str:
        return telling.masked(items[0]._replace(tokens=block.tokens), most=block.most, count=self.scope.count_tokens)

    async def _in_full(self, block: Block, session_id: UUID) -> Sequence[Shown]:
        """The block's messages, with the words of those that are masked."""
        masked = [item for item in block.items if item.kind == "mask"]
        if not masked:
            return block.items
        async with self.scope.transaction() as tx:
            parts = [log.Stretch(item.first, item.last) for item in masked]
            rows = await log.lines(tx, parts, agent_id=self.scope.agent_id, session_id=session_id)
        words = {placed.position: placed.line.content for placed in rows}
        return [item._replace(text=words[item.first]) if item.kind == "mask" else item for item in block.items]

    async def _account(
        self, strategy: Strategy, block: Block, items: Sequence[Shown], allowance: Allowance
    ) -> tuple[str, str | None]:
        """What the block comes to, and the model that told it."""
        found = telling.account(items)
        told, why = await self._accounts.told(block, items, allowance)
        if why:
            self.tell(Failed(strategy=strategy.name, error=why, time=self.scope.now()))
        name = self.model.name if self.model and told else None
        account = joined(told, found) if told else found
        return telling.written(block.kind, account, items, most=block.most, count=self.scope.count_tokens), name

    @property
    def _accounts(self) -> Accounts:
        scope = self.scope
        return Accounts(
            clock=scope.clock, count=scope.count_tokens, model=self.model, window=self.window, breaker=self.breaker
        )

    async def _folded(self, session_id: UUID) -> Read:
        """The session, with those tasks folded that could not be when they ended."""
        of = {"agent_id": self.scope.agent_id, "session_id": session_id}
        async with self.scope.transaction() as tx:
            return await tasks.folded(tx, **of, now=self.scope.now(), count=self.scope.count_tokens)

    async def _read(self, session_id: UUID) -> Read:
        async with self.scope.transaction() as tx:
            return await log.read(tx, agent_id=self.scope.agent_id, session_id=session_id)

    def _sight(self, read: Read, most: int) -> Sight:
        return Sight(read.view, min(most, self.preset.most), read.pinned)

    async def _end(self, run: Run, session_id: UUID, *, exhausted: bool) -> None:
        async with self.scope.transaction() as tx:
            await entries.record(tx, run, agent_id=self.scope.agent_id, session_id=session_id)
        if run.error:
            self.tell(Failed(strategy=run.strategy, error=run.error, time=run.at))
            return
        self.tell(
            Completed(
                strategy=run.strategy,
                saved=run.before - run.after,
                new_count=run.after,
                duration_ms=run.duration_ms,
                time=run.at,
                exhausted=exhausted,
            )
        )


def _unheard(event: Event) -> None:
    """What is only tried is told to nobody."""
