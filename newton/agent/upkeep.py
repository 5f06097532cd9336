"""Keeps a mind in order: vectors for what waits, facts compared and generalised, every memory in its right state."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.agent.asking import Asking
from newton.agent.compressing import shorten
from newton.agent.extraction import Harvest, extract
from newton.agent.scope import AgentScope
from newton.cognition import bundles, workingset
from newton.db.pool import Tx
from newton.dialogue import artifacts
from newton.dialogue.artifacts import Writer
from newton.dialogue.condensing import USUAL, Sizes
from newton.errors import ConfigError
from newton.heart import entities
from newton.heart.comparing import Bounds, compare
from newton.heart.generalising import generalise
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import Living
from newton.ids import model_id
from newton.memory.outbox import Drained, Outbox
from newton.memory.transitions import Step, changed_since

if TYPE_CHECKING:
    pass

# After writing, so many waiting memories are seen to before the door answers; the rest follows later.
AT_ONCE = 64


class Lived(NamedTuple):
    """What the daily upkeep did: the steps it took, and how many old contexts it let go of."""

    steps: Sequence[Step]
    expired: int


class Released(NamedTuple):
    """How many contexts were let go of, and how many sessions have nothing at hand any more."""

    contexts: int
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """For one agent; `origin` names who asks for it. Contexts are kept for `bundle_days`, or for ever if that is 0."""

    scope: AgentScope
    bundle_days: int
    bounds: Bounds
    asking: Asking | None
    working_days: int = 30
    sizes: Sizes = USUAL

    async def settle(self, most: int | None = AT_ONCE) -> Drained:
        """Reads what was written for names, embeds what waits in the outbox, and compares the facts with what is known.

        At most so many of each, or all.
        """
        await self._read_names(once=most is not None)
        if self.scope.embedder is None:
            return Drained(0, 0, down="no embedding model is set")
        drained = await Outbox(self.scope.db, self.scope.embedder, self.scope.agent_id).drain(most=most)
        model = model_id(self.scope.embedder.identity)
        await compare(
            self.scope.db, self.scope.write_context(), self.bounds, model_id=model, judge=self.asking, most=most
        )
        return drained

    async def _read_names(self, *, once: bool) -> None:
        ctx = self.scope.write_context()
        after: UUID | None = None
        while True:
            async with self.scope.transaction() as tx:
                read = await entities.read(tx, ctx=ctx, after=after)
            if once or not read.memories:
                return
            after = read.last

    async def lifecycle(self, *, dry: bool = False) -> Lived:
        """All of the daily upkeep, one part after the other: joins facts that say the same, generalises what has grown
        too many, takes every step that is due, and lets go of what is too old. Returns all steps taken, or with `dry`
        those that the record asks for as it is."""
        if dry:
            return Lived(await engine.live(self.scope.db, self.scope.write_context(), dry=True), 0)
        began = self.scope.now()
        await self.settle(most=None)
        await self.generalise()
        await self.live()
        async with self.scope.transaction() as tx:
            released = await self.release(tx)
        async with self.scope.transaction() as tx:
            changed = await changed_since(tx, began, agent_id=self.scope.agent_id, origin=self.scope.origin)
            if changed:
                about = {"job": "lifecycle", "did": Counter(change.step.event for change in changed)}
                self.scope.publish("job.ended", about)
        return Lived([change.step for change in changed], released.contexts)

    async def generalise(self) -> int:
        """Tells in few what has grown too many; how many facts that concerned."""
        return await generalise(self.scope.db, self.scope.write_context())

    async def live(self, kind: Living | None = None) -> list[Step]:
        """Takes every step that is due, of memories of that kind, beyond the caps, or of all."""
        return await engine.live(self.scope.db, self.scope.write_context(), only=kind)

    async def release(self, tx: Tx) -> Released:
        """Lets go of contexts that are too old, and of what sessions had at hand that nobody touches any more."""
        now, agent_id = self.scope.now(), self.scope.agent_id
        sets = await workingset.lapse(tx, agent_id=agent_id, before=now - timedelta(days=self.working_days))
        if not self.bundle_days:
            return Released(0, sets)
        before = now - timedelta(days=self.bundle_days)
        return Released(await bundles.expire(tx, agent_id=agent_id, before=before), sets)

    async def summarise(self) -> int:
        """Brings summaries up to date that doors have left behind; of how many sessions."""
        async with self.scope.transaction() as tx:
            late = await artifacts.behind(tx, agent_id=self.scope.agent_id, sizes=self.sizes, most=AT_ONCE)
        for session_id in late:
            writer = Writer(session_id=session_id, ctx=self.scope.write_context(), sizes=self.sizes)
            async with self.scope.transaction() as tx:
                await writer.note(tx)
        return len(late)

    async def extract(self) -> Harvest:
        """Has the model read the conversations that none has read. Raises ConfigError when no model is set."""
        if self.asking is None:
            raise ConfigError("No model is set to read with.", hint="Set OPENAI_API_KEY or OPENAI_BASE_URL.")
        return await extract(self.asking, self.scope.write_context(), most=AT_ONCE)

    async def shorten(self) -> int:
        """Has the model tell long lines shorter; how many it did. Without a model nothing happens."""
        return 0 if self.asking is None else await shorten(self.asking, self.scope.write_context(), most=AT_ONCE)
