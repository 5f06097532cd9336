"""A conversation as a program holds it: lines are appended, and before each request the view is made shorter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from newton.agent.compacting import Compacting
from newton.agent.conversations import Conversations
from newton.dialogue.compaction.events import Completed, Event, Failed
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.lines import Line
from newton.dialogue.view import Shown, cost
from newton.providers import tokens
from tests.scenarios.conftest import Mind


@dataclass(slots=True)
class Talking:
    """One session, `s1` unless another is named, and what was told of it while it was made shorter."""

    mind: Mind
    strategies: str = "default"
    ref: str = "s1"
    chosen: dict[str, object] = field(default_factory=dict[str, object])
    told: list[Event] = field(default_factory=list[Event])
    sent: list[int] = field(default_factory=list[int])
    compacting: Compacting = field(init=False)

    def __post_init__(self) -> None:
        self.compacting = self.mind.compacting(self.strategies, **{"tell": self.told.append, **self.chosen})

    @property
    def doors(self) -> Conversations:
        mind = self.mind
        return Conversations(
            compacting=self.compacting,
            room=100_000,
            scope=mind.scope,
        )

    async def says(self, *lines: Line) -> UUID:
        await self.doors.append(self.ref, lines)
        return await self.mind.session(self.ref)

    async def asks(self, *, most: int) -> Sequence[Shown]:
        """The view of a request in a window of so many tokens."""
        session_id = await self.mind.session(self.ref)
        view = fitted(await self.compacting.view(session_id, most=most), most=most, count=tokens.count)
        self.sent.append(cost(view))
        return view

    async def turns(self, turns: Sequence[Sequence[Line]], *, most: int) -> Sequence[Shown]:
        view: Sequence[Shown] = ()
        for lines in turns:
            await self.says(*lines)
            view = await self.asks(most=most)
        return view

    @property
    def ran(self) -> list[str]:
        """The strategies that changed something, in order."""
        return [event.strategy for event in self.told if isinstance(event, Completed)]

    @property
    def failed(self) -> list[str]:
        return [event.error for event in self.told if isinstance(event, Failed)]


def words(view: Sequence[Shown]) -> str:
    return "\n".join(item.text + " ".join(call.arguments for call in item.calls) for item in view)
