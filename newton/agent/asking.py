"""Asks a model for forms off the hot path: within the day's ceiling, with every token recorded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from newton.agent import ledger
from newton.agent.scope import AgentScope
from newton.cognition.tiebreak import Pick, picking_prompt
from newton.content.frames import Frame
from newton.db.pool import in_unit_of_work
from newton.errors import ProviderError, SpendError
from newton.heart.extracting import Same, judging_prompt
from newton.providers.chat import ChatMessage, Reply
from newton.providers.structured import FormModel, filled

F = TypeVar("F", bound=BaseModel)

JUDGEMENT_TOKENS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """For one agent. It is also the Judge of whether two statements say the same, and breaks the ties of frames."""

    scope: AgentScope
    model: FormModel
    per_day: int

    @property
    def name(self) -> str:
        """What its model is called in the record of costs."""
        return self.model.name

    async def fill(
        self, prompt: str, form: type[F], *, purpose: str, max_tokens: int, seconds: float | None = None
    ) -> F | None:
        """The form as the model filled it, or None when what it gave does not fit.

        Raises SpendError when the call could pass the day's ceiling, and ProviderError when no answer comes, or none
        in so many seconds.
        """
        assert not in_unit_of_work()
        async with self.scope.transaction() as tx:
            spent = await ledger.spent(tx, agent_id=self.scope.agent_id, now=self.scope.now())
        if spent + self.scope.count_tokens(prompt) + max_tokens > self.per_day:
            raise SpendError(
                f"Today's ceiling of {self.per_day:,} model tokens leaves no room for this.",
                hint="Raise NEWTON_LLM_TOKENS_PER_DAY, or wait until tomorrow.",
            )
        heard, reply, failed = list[str](), None, False
        try:
            async with asyncio.timeout(seconds):
                async for piece in self.model.stream([ChatMessage("user", prompt)], max_tokens=max_tokens, form=form):
                    if isinstance(piece, Reply):
                        reply = piece
                    else:
                        heard.append(piece)
        except TimeoutError:
            what = f"The model {self.name} did not answer in {seconds:.0f} seconds."
            raise ProviderError(what, hint="Name a faster one, or none, for this.") from None
        except ProviderError:
            failed = True  # a model that fails has told its cost before, or had none
            raise
        finally:
            # Shielded: what was asked and heard is paid for, even when nobody waits for the rest.
            if spent := reply or (None if failed else self._estimated(prompt, "".join(heard))):
                await asyncio.shield(self._record(spent, purpose))
        return filled(reply.text if reply else "", form)

    def _estimated(self, prompt: str, text: str) -> Reply:
        return Reply(
            text=text,
            model=self.name,
            input_tokens=self.scope.count_tokens(prompt),
            output_tokens=self.scope.count_tokens(text),
            estimated=True,
            finish="interrupted",
        )

    async def _record(self, reply: Reply, purpose: str) -> None:
        async with self.scope.transaction() as tx:
            await ledger.record(tx, reply, agent_id=self.scope.agent_id, purpose=purpose, now=self.scope.now())

    async def frame(self, text: str, close: Sequence[Frame]) -> str | None:
        """Which of the frames the text wants; None when the model cannot say or cannot be asked."""
        try:
            pick = await self.fill(picking_prompt(text, close), Pick, purpose="frame", max_tokens=JUDGEMENT_TOKENS)
        except ProviderError:
            return None
        return pick and pick.frame

    async def same(self, told: str, known: str) -> bool:
        """Whether both say the same; what the model cannot answer is no."""
        answer = await self.fill(judging_prompt(told, known), Same, purpose="judge", max_tokens=JUDGEMENT_TOKENS)
        return answer is not None and answer.same
