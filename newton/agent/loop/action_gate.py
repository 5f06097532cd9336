"""Censor checks of inputs, actions and replies, made in code and not by the model."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from newton.agent.scope import AgentScope
from newton.errors import CensorError, ProviderError
from newton.heart import activations, censors
from newton.heart.censors import Censor, CensorStage
from newton.ids import derive_model_id
from newton.memory.lookup import short_id
from newton.memory.question_detection import remove_questions

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

LOOKBACK_CHARS = 500  # the maximum length of a trigger


@dataclass(frozen=True, slots=True)
class CensorCheck:
    """The censors that match a text. `unchecked` says why matching by meaning failed, or is None."""

    matches: tuple[Censor, ...]
    unchecked: str | None = None

    @property
    def blocks(self) -> bool:
        return any(censor.is_blocking for censor in self.matches)

    @property
    def message(self) -> str:
        """Return the trigger, the reason and the short id of a matching censor, preferably a blocking one."""
        first = self._first
        return f"{first.trigger}: {first.reason} (censor {short_id(first.memory_id)})"

    @property
    def remedy(self) -> str:
        """Return the commands by which a person relaxes that censor."""
        ref = short_id(self._first.memory_id)
        return (
            f"`newton censors relax {ref}` makes it a warning; `newton censors false-positive {ref}` reports a wrong"
            " match."
        )

    @property
    def _first(self) -> Censor:
        return next((censor for censor in self.matches if censor.is_blocking), self.matches[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGate:
    """Checks of texts against the censors of one agent."""

    scope: AgentScope

    async def check(self, text: str, stage: CensorStage, *, dry_run: bool = False) -> CensorCheck:
        """Return the censors that match `text`. Unless `dry_run`, record an activation of each that an act matches."""
        rules = await self._list_rules()
        vector, unchecked = await self._embed_text(text, rules)
        matches = censors.find_matching(rules, text, vector)
        if not dry_run and (acts := _find_act_matches(matches, text, vector, stage)):
            await self._record_activations(acts, stage)
        return CensorCheck(tuple(matches), unchecked)

    async def filter_stream(self, chunks: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """Yield the chunks of a reply; while a blocking censor is in force, yield whole lines.

        Raises CensorError in place of a line that a censor blocks; the text yielded before has been checked.
        """
        rules = await self._list_rules()
        blocking = [censor for censor in rules if censor.is_blocking]
        passed = pending = ""
        async with aclosing(chunks):
            async for chunk in chunks:
                if not blocking:
                    passed += chunk
                    yield chunk
                    continue
                pending += chunk
                ready = pending[: pending.rfind("\n") + 1]
                if ready:
                    await self._check_chunk(blocking, passed, ready)
                    passed, pending = passed + ready, pending[len(ready) :]
                    yield ready
        if pending:
            await self._check_chunk(blocking, passed, pending)
            yield pending

    async def _check_chunk(self, blocking: Sequence[Censor], previous: str, chunk: str) -> None:
        """Raise CensorError if a censor blocks `chunk`. A match may begin at the end of `previous`."""
        text = previous[-LOOKBACK_CHARS:] + chunk
        vector, _ = await self._embed_text(text, blocking)
        if matches := censors.find_matching(blocking, text, vector):
            await self._record_activations(matches[:1], "output")
            check = CensorCheck((matches[0],))
            raise CensorError(f"A censor blocked the reply: {check.message}.", hint=check.remedy)

    async def _list_rules(self) -> Sequence[Censor]:
        model = derive_model_id(self.scope.embedder.identity) if self.scope.embedder else None
        async with self.scope.transaction() as tx:
            return await censors.list_in_force(tx, agent_id=self.scope.agent_id, model_id=model)

    async def _record_activations(self, matches: Sequence[Censor], stage: CensorStage) -> None:
        memory_ids = [censor.memory_id for censor in matches]
        async with self.scope.write() as (tx, ctx):
            await activations.record_activations(tx, "censor", memory_ids, stage=stage, ctx=ctx)

    async def _embed_text(self, text: str, rules: Sequence[Censor]) -> "tuple[Vector | None, str | None]":
        if not any(censor.match_mode == "meaning" for censor in rules):
            return None, None
        if self.scope.embedder is None:
            return None, "no embedding model is set"
        try:
            return (await self.scope.embedder.embed([text]))[0], None
        except ProviderError as error:
            return None, error.what


def _find_act_matches(
    matches: Sequence[Censor], text: str, vector: "Vector | None", stage: CensorStage
) -> Sequence[Censor]:
    """Return the censors that an act or a request to act matches: a question or a reply of the model is no act."""
    if stage == "output":
        return ()
    acts = text if stage == "action" else remove_questions(text)
    return censors.find_matching(matches, acts, vector) if acts.strip() else ()
