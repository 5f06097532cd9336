"""Records of prompts: show what was sent to the model in a turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from newton.agent.prompt_records import prompt_store
from newton.agent.prompt_records.reproduction import PromptReproduction, reproduce_prompt
from newton.agent.scope import AgentScope


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompts:
    """The prompts of a turn: one for each call of the model, in their order."""

    session: str
    input_position: int
    calls: Sequence[PromptReproduction]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptService:
    """Records of the prompts of one agent."""

    scope: AgentScope

    async def show(self, turn: str = prompt_store.LATEST, *, session: str | None = None) -> TurnPrompts:
        """Return the prompts of a turn as the model received them.

        `turn` is `latest`, `previous`, the position of a message of the turn, or the id of one of its prompts. Without
        a `session`, the session of the latest record is meant. Raises InputError for another `turn`, NotFoundError if
        there is no such record, and ConflictError if several match.
        """
        async with self.scope.transaction(snapshot=True) as tx:
            place = await prompt_store.find_turn(tx, turn, session=session, agent_id=self.scope.agent_id)
            records = await prompt_store.list_prompts(tx, place, agent_id=self.scope.agent_id)
            sources = await prompt_store.load_sources(tx, records, agent_id=self.scope.agent_id)
        return TurnPrompts(
            session=records[0].session,
            input_position=place.input_position,
            calls=[reproduce_prompt(record, sources) for record in records],
        )
