"""The gate: censors are checked here, in code, on what comes in, on what is about to be done, and on what goes out."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.errors import CensorError, ConflictError, ProviderError
from newton.heart import activations, censors
from newton.heart.censors import Censor, CensorRule, CensorStage, CensorSummary
from newton.ids import derive_model_id
from newton.memory.lookup import resolve_id

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

LOOKBACK_CHARS = 500  # characters; no trigger is longer


@dataclass(frozen=True, slots=True)
class CensorCheck:
    """Which censors a text met. `unread` says why those that go by meaning were not asked."""

    matches: tuple[Censor, ...]
    unchecked: str | None = None

    @property
    def blocks(self) -> bool:
        return any(censor.is_blocking for censor in self.matches)

    @property
    def message(self) -> str:
        """The strictest that was met, in words for whoever is stopped or warned."""
        first = next((censor for censor in self.matches if censor.is_blocking), self.matches[0])
        return f"{first.trigger}: {first.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGate:
    """For one agent; `origin` names the door."""

    scope: AgentScope

    async def check(self, text: str, stage: CensorStage, *, dry_run: bool = False) -> CensorCheck:
        """What the censors say of a text; unless it is dry, those that were met count it."""
        model = derive_model_id(self.scope.embedder.identity) if self.scope.embedder else None
        async with self.scope.transaction() as tx:
            known = await censors.list_in_force(tx, agent_id=self.scope.agent_id, model_id=model)
        vector, unread = await self._embed_text(text, known)
        met = censors.find_matching(known, text, vector)
        if met and not dry_run:
            async with self.scope.transaction() as tx:
                await activations.record_activations(
                    tx, "censor", [censor.memory_id for censor in met], stage=stage, ctx=self.scope.write_context()
                )
        return CensorCheck(tuple(met), unread)

    async def filter_stream(self, chunks: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """The pieces of an answer, held back to the end of a line while some censor blocks: what it would stop is not
        said. Raises CensoredError then; what was said before was checked."""
        model = derive_model_id(self.scope.embedder.identity) if self.scope.embedder else None
        async with self.scope.transaction() as tx:
            known = await censors.list_in_force(tx, agent_id=self.scope.agent_id, model_id=model)
        strict = [censor for censor in known if censor.is_blocking]
        said = held = ""
        async with aclosing(chunks):
            async for piece in chunks:
                if not strict:
                    said += piece
                    yield piece
                    continue
                held += piece
                ready = held[: held.rfind("\n") + 1]
                if ready:
                    await self._check_chunk(strict, said, ready)
                    said, held = said + ready, held[len(ready) :]
                    yield ready
        if held:
            await self._check_chunk(strict, said, held)
            yield held
        if known and said + held:
            await self.check(said + held, "output")

    async def _check_chunk(self, blocking: Sequence[Censor], previous: str, chunk: str) -> None:
        """Nothing, if no censor stops it. Looks at the end of what was said too, where a trigger may begin."""
        text = previous[-LOOKBACK_CHARS:] + chunk
        vector, _ = await self._embed_text(text, blocking)
        if met := censors.find_matching(blocking, text, vector):
            async with self.scope.transaction() as tx:
                await activations.record_activations(
                    tx, "censor", [met[0].memory_id], stage="output", ctx=self.scope.write_context()
                )
            raise CensorError(
                f"A censor stopped the answer: {CensorCheck((met[0],)).message}.", hint="Ask for something else."
            )

    async def add(self, rule: CensorRule) -> bool:
        """Puts a rule in force, or makes it a block; False when it is so already.

        Raises ConflictError for one that was taken out of force.
        """
        async with self.scope.transaction() as tx:
            changed = await censors.add_rules(tx, [rule], ctx=self.scope.write_context())
            if not changed and await censors.is_retired(tx, rule, agent_id=self.scope.agent_id):
                raise ConflictError(
                    f"{rule.trigger!r} was taken out of force for good.", hint="Forbid it in other words."
                )
            for memory_id in changed:
                self._publish("added", memory_id)
            return bool(changed)

    async def list_censors(self) -> list[CensorSummary]:
        """Every censor with its record."""
        async with self.scope.transaction() as tx:
            return await censors.list_censors(tx, agent_id=self.scope.agent_id)

    async def report_false_positive(self, censor_ref: str) -> None:
        """The last time this censor was met, it should not have been."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            await activations.record_result(tx, "censor", memory_id, "false_positive", ctx=self.scope.write_context())
            self._publish("false_positive", memory_id)

    async def approve(self, censor_ref: str) -> bool:
        """A person puts a censor in force that an agent or a model proposed. False when it did not wait for that."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            approved = await censors.approve(tx, memory_id, ctx=self.scope.write_context())
            if approved:
                self._publish("approved", memory_id)
            return approved

    async def retire(self, censor_ref: str) -> None:
        """A person takes the censor out of force. Nobody else can."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            await censors.retire(tx, memory_id, ctx=self.scope.write_context())
            self._publish("retired", memory_id)

    def _publish(self, event: str, memory_id: UUID) -> None:
        self.scope.publish(f"censor.{event}", {"memory_id": str(memory_id)})

    async def _embed_text(self, text: str, rules: Sequence[Censor]) -> "tuple[Vector | None, str | None]":
        if not any(censor.match_mode == "meaning" for censor in rules):
            return None, None
        if self.scope.embedder is None:
            return None, "no embedding model is set"
        try:
            return (await self.scope.embedder.embed([text]))[0], None
        except ProviderError as error:
            return None, error.what
