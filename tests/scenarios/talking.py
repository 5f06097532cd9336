"""A conversation as a program holds it: lines are appended, and before each request the view is made shorter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from newton.agent.compaction.service import CompactionService
from newton.agent.services.sessions import SessionService
from newton.dialogue.compaction.progress_events import CompactionCompleted, CompactionEvent, CompactionFailed
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import Message
from newton.dialogue.view import ViewMessage, count_view_tokens
from newton.providers import token_counter
from tests.scenarios.conftest import Mind


@dataclass(slots=True)
class Talking:
    """One session, `s1` unless another is named, and what was told of it while it was made shorter."""

    mind: Mind
    strategies: str = "default"
    ref: str = "s1"
    chosen: dict[str, object] = field(default_factory=dict[str, object])
    told: list[CompactionEvent] = field(default_factory=list[CompactionEvent])
    sent: list[int] = field(default_factory=list[int])
    compacting: CompactionService = field(init=False)
    session_id: UUID | None = None

    def __post_init__(self) -> None:
        self.compacting = self.mind.compacting(self.strategies, **{"on_event": self.told.append, **self.chosen})

    @property
    def doors(self) -> SessionService:
        mind = self.mind
        return SessionService(
            compaction=self.compacting,
            conversation_tokens=100_000,
            working_set_tokens=8_000,
            scope=mind.scope,
        )

    async def says(self, *lines: Message) -> UUID:
        await self.doors.append(self.ref, lines)
        return await self.session()

    async def session(self) -> UUID:
        """The id of the session, which is looked up once."""
        self.session_id = self.session_id or await self.mind.session(self.ref)
        return self.session_id

    async def asks(self, *, most: int) -> Sequence[ViewMessage]:
        """The view of a request in a window of so many tokens."""
        session_id = await self.session()
        view = fit_to_budget(
            await self.compacting.load_view(session_id, max_tokens=most),
            max_tokens=most,
            count_tokens=token_counter.count,
        )
        self.sent.append(count_view_tokens(view))
        return view

    async def turns(self, turns: Sequence[Sequence[Message]], *, most: int, at_once: int = 1) -> Sequence[ViewMessage]:
        """The last view of turns that are told so many at once; a view is asked for after each time."""
        view: Sequence[ViewMessage] = ()
        for first in range(0, len(turns), at_once):
            await self.says(*(line for lines in turns[first : first + at_once] for line in lines))
            view = await self.asks(most=most)
        return view

    @property
    def ran(self) -> list[str]:
        """The strategies that changed something, in order."""
        return [event.strategy for event in self.told if isinstance(event, CompactionCompleted)]

    @property
    def failed(self) -> list[str]:
        return [event.error for event in self.told if isinstance(event, CompactionFailed)]


def words(view: Sequence[ViewMessage]) -> str:
    return "\n".join(item.text + " ".join(call.arguments for call in item.calls) for item in view)
