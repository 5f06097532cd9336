"""Censor checks, in code, on inputs, actions and outputs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from newton.agent.scope import AgentScope
from newton.errors import CensorError, ProviderError
from newton.heart import activations, censors
from newton.heart.censors import Censor, CensorStage
from newton.ids import derive_model_id

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

LOOKBACK_CHARS = 500  # no trigger is longer


@dataclass(frozen=True, slots=True)
class CensorCheck:
    """The censors that matched a text. `unchecked` says why censors by meaning could not be checked."""

    matches: tuple[Censor, ...]
    unchecked: str | None = None

    @property
    def blocks(self) -> bool:
        return any(censor.is_blocking for censor in self.matches)

    @property
    def message(self) -> str:
        """Return the trigger and reason of the strictest matching censor."""
        first = next((censor for censor in self.matches if censor.is_blocking), self.matches[0])
        return f"{first.trigger}: {first.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGate:
    """Checks texts against the censors of one agent."""

    scope: AgentScope

    async def check(self, text: str, stage: CensorStage, *, dry_run: bool = False) -> CensorCheck:
        """Return the censors that match `text`, and count each as activated unless `dry_run`."""
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
        """Yield the chunks of a reply, buffered to line ends while a blocking censor is in force.

        Raises CensorError before a chunk that a censor blocks; the text yielded until then has been checked.
        """
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
        """Raise CensorError if a censor blocks `chunk`. A trigger may begin at the end of `previous`."""
        text = previous[-LOOKBACK_CHARS:] + chunk
        vector, _ = await self._embed_text(text, blocking)
        if met := censors.find_matching(blocking, text, vector):
            async with self.scope.transaction() as tx:
                await activations.record_activations(
                    tx, "censor", [met[0].memory_id], stage="output", ctx=self.scope.write_context()
                )
            raise CensorError(
                f"A censor blocked the reply:  {CensorCheck((met[0],)).message}.", hint="Ask for something else."
            )

    async def _embed_text(self, text: str, rules: Sequence[Censor]) -> "tuple[Vector | None, str | None]":
        if not any(censor.match_mode == "meaning" for censor in rules):
            return None, None
        if self.scope.embedder is None:
            return None, "no embedding model is set"
        try:
            return (await self.scope.embedder.embed([text]))[0], None
        except ProviderError as error:
            return None, error.what
