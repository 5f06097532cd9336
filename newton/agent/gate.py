"""The gate: censors are checked here, in code, on what comes in, on what is about to be done, and on what goes out."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.errors import CensoredError, ConflictError, ProviderError
from newton.heart import activations, censors
from newton.heart.censors import Censor, Listed, Place, Rule
from newton.ids import model_id
from newton.memory.lookup import resolve

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

LOOK_BACK = 500  # characters; no trigger is longer


@dataclass(frozen=True, slots=True)
class Ruling:
    """Which censors a text met. `unread` says why those that go by meaning were not asked."""

    met: tuple[Censor, ...]
    unread: str | None = None

    @property
    def blocks(self) -> bool:
        return any(censor.blocks for censor in self.met)

    @property
    def words(self) -> str:
        """The strictest that was met, in words for whoever is stopped or warned."""
        first = next((censor for censor in self.met if censor.blocks), self.met[0])
        return f"{first.trigger}: {first.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """For one agent; `origin` names the door."""

    scope: AgentScope

    async def check(self, text: str, place: Place, *, dry: bool = False) -> Ruling:
        """What the censors say of a text; unless it is dry, those that were met count it."""
        model = model_id(self.scope.embedder.identity) if self.scope.embedder else None
        async with self.scope.transaction() as tx:
            known = await censors.in_force(tx, agent_id=self.scope.agent_id, model_id=model)
        vector, unread = await self._meaning(text, known)
        met = censors.met(known, text, vector)
        if met and not dry:
            async with self.scope.transaction() as tx:
                await activations.activate(
                    tx, "censor", [censor.memory_id for censor in met], place=place, ctx=self.scope.write_context()
                )
        return Ruling(tuple(met), unread)

    async def watched(self, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """The pieces of an answer, held back to the end of a line while some censor blocks: what it would stop is not
        said. Raises CensoredError then; what was said before was checked."""
        model = model_id(self.scope.embedder.identity) if self.scope.embedder else None
        async with self.scope.transaction() as tx:
            known = await censors.in_force(tx, agent_id=self.scope.agent_id, model_id=model)
        strict = [censor for censor in known if censor.blocks]
        said = held = ""
        async with aclosing(pieces):
            async for piece in pieces:
                if not strict:
                    said += piece
                    yield piece
                    continue
                held += piece
                ready = held[: held.rfind("\n") + 1]
                if ready:
                    await self._let_through(strict, said, ready)
                    said, held = said + ready, held[len(ready) :]
                    yield ready
        if held:
            await self._let_through(strict, said, held)
            yield held
        if known and said + held:
            await self.check(said + held, "output")

    async def _let_through(self, strict: Sequence[Censor], said: str, more: str) -> None:
        """Nothing, if no censor stops it. Looks at the end of what was said too, where a trigger may begin."""
        text = said[-LOOK_BACK:] + more
        vector, _ = await self._meaning(text, strict)
        if met := censors.met(strict, text, vector):
            async with self.scope.transaction() as tx:
                await activations.activate(
                    tx, "censor", [met[0].memory_id], place="output", ctx=self.scope.write_context()
                )
            raise CensoredError(
                f"A censor stopped the answer: {Ruling((met[0],)).words}.", hint="Ask for something else."
            )

    async def forbid(self, rule: Rule) -> bool:
        """Puts a rule in force, or makes it a block; False when it is so already.

        Raises ConflictError for one that was taken out of force.
        """
        async with self.scope.transaction() as tx:
            changed = await censors.forbid(tx, [rule], ctx=self.scope.write_context())
            if not changed and await censors.retired(tx, rule, agent_id=self.scope.agent_id):
                raise ConflictError(
                    f"{rule.trigger!r} was taken out of force for good.", hint="Forbid it in other words."
                )
            for memory_id in changed:
                self._tell("forbidden", memory_id)
            return bool(changed)

    async def listed(self) -> list[Listed]:
        """Every censor with its record."""
        async with self.scope.transaction() as tx:
            return await censors.listed(tx, agent_id=self.scope.agent_id)

    async def wrong(self, given: str) -> None:
        """The last time this censor was met, it should not have been."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id, kind="censor")
            await activations.judge(tx, "censor", memory_id, "false_positive", ctx=self.scope.write_context())
            self._tell("judged", memory_id)

    async def approve(self, given: str) -> bool:
        """A person puts a censor in force that an agent or a model proposed. False when it did not wait for that."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id, kind="censor")
            approved = await censors.approve(tx, memory_id, ctx=self.scope.write_context())
            if approved:
                self._tell("approved", memory_id)
            return approved

    async def retire(self, given: str) -> None:
        """A person takes the censor out of force. Nobody else can."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id, kind="censor")
            await censors.retire(tx, memory_id, ctx=self.scope.write_context())
            self._tell("retired", memory_id)

    def _tell(self, what: str, memory_id: UUID) -> None:
        self.scope.publish(f"censor.{what}", {"memory_id": str(memory_id)})

    async def _meaning(self, text: str, known: Sequence[Censor]) -> "tuple[Vector | None, str | None]":
        if not any(censor.sense == "meaning" for censor in known):
            return None, None
        if self.scope.embedder is None:
            return None, "no embedding model is set"
        try:
            return (await self.scope.embedder.embed([text]))[0], None
        except ProviderError as error:
            return None, error.what
