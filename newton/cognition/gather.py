"""Everything one context is made from, read side by side. What is late or down is left out, and said."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.brain import snapshots
from newton.brain.snapshots import Advice
from newton.cognition import bundles
from newton.cognition.opening import substance
from newton.cognition.request import Request
from newton.concurrency import timely, together
from newton.db.pool import Database, Tx
from newton.errors import ProviderError
from newton.heart import censors, identity, procedures
from newton.heart.censors import Censor
from newton.heart.tenets import NOBODY, Identity
from newton.memory.memory import Kind
from newton.memory.ranking import USUAL, Weighing
from newton.memory.recall import Cue, Found, Recollection, Search, Width, before, being_made, recall

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

FEW: Mapping[Kind, Width] = {
    "fact": Width(searched=30, kept=30),
    "episode": Width(searched=10, kept=10),
    "procedure": Width(searched=10, kept=10),
    "passage": Width(searched=20, kept=20),
    "event": Width(searched=10, kept=10),
    "decision": Width(searched=20, kept=20),
}
LINES_SEARCHED = 150  # by meaning and as many by words; what stands beside the best of them comes on top
TOKENS_A_LINE = 28  # fewer than most lines cost, so that what is kept more than fills the context
FEWEST_LINES, MOST_LINES = 40, 300
FOCUS_LINES = 12
DECIDING = timedelta(days=3)  # so long a decision that is not carried out is taken to be in the making
MOST_OPEN = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds whatever the input is: who the agent is, what is forbidden, and the procedures that ask for it by
    name."""

    identity: Identity = NOBODY
    censors: Sequence[Censor] = ()
    triggered: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where the agent is: the session's last frame, its lines just out of view (the nearest first), the decisions that
    are being made, and what the record of decisions advises."""

    frame: str | None = None
    focus: Sequence[Found] = ()
    open: Sequence[Found] = ()
    advice: Advice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the sources gave. `core` is the vector of the input behind its polite opening, None when it has none.

    `missing` names those that gave nothing, or less, and why.
    """

    recalled: Recollection
    standing: Standing
    situation: Situation
    core: "Vector | None"
    missing: Mapping[str, str]


@dataclass(slots=True)
class _Reading:
    """Sources that are asked side by side, each in its own unit of work and for at most so many seconds."""

    seconds: float
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def of(self, name: str, source: Awaitable[T], *, instead: T) -> T:
        try:
            return await timely(source, seconds=self.seconds)
        except TimeoutError:
            self.missing[name] = f"no answer within {self.seconds:g} seconds"
            return instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a context comes from. `seconds` is the deadline of each source."""

    db: Database
    embedder: "Embedder | None"
    seconds: float
    weighing: Weighing = USUAL

    async def gather(self, request: Request, *, now: datetime) -> Gathered:
        """Asks all sources at once. `now` is the moment for which the context is made."""
        reading = _Reading(self.seconds)
        nothing = Recollection(cue=Cue(text=request.input), found=(), missing={})
        async with together() as tasks:
            recalling = tasks.create_task(reading.of("memories", self._recall(request), instead=nothing))
            standing = tasks.create_task(
                reading.of("identity and constraints", self._read(request, _standing), instead=Standing())
            )
            situation = tasks.create_task(
                reading.of("session", self._read(request, _situation(now)), instead=Situation())
            )
            core = tasks.create_task(reading.of("core", self._core(request), instead=None))
        recalled = recalling.result()
        return Gathered(
            recalled=recalled,
            standing=standing.result(),
            situation=situation.result(),
            core=core.result(),
            missing={**recalled.missing, **reading.missing},
        )

    async def _recall(self, request: Request) -> Recollection:
        search = Search(
            db=self.db,
            agent_id=request.agent_id,
            widths={k: width for k, width in widths(request.tokens).items() if k not in self.weighing.without},
            moment=request.as_of,
            seconds=self.seconds / 2,
            weighing=self.weighing,
        )
        return await recall(request.input, embedder=self.embedder, search=search)

    async def _core(self, request: Request) -> "Vector | None":
        core = substance(request.input)
        if self.embedder is None or request.frame or core == request.input:
            return None
        try:
            return (await self.embedder.embed([core]))[0]
        except ProviderError:
            return None  # the memories were searched without it too, and that is told

    async def _read(self, request: Request, source: Callable[[Tx, Request], Awaitable[T]]) -> T:
        async with self.db.work(request.agent_id) as tx:
            return await source(tx, request)


async def _standing(tx: Tx, request: Request) -> Standing:
    triggers = await procedures.triggers(tx, agent_id=request.agent_id)
    return Standing(
        identity=await identity.read(tx, agent_id=request.agent_id, moment=request.as_of),
        censors=await censors.in_force(tx, agent_id=request.agent_id, model_id=None),
        triggered=procedures.triggered(triggers, request.input),
    )


def _situation(now: datetime) -> Callable[[Tx, Request], Awaitable[Situation]]:
    async def read(tx: Tx, request: Request) -> Situation:
        agent_id, session_id = request.agent_id, request.session_id
        return Situation(
            frame=session_id and await bundles.frame_of(tx, agent_id=agent_id, session_id=session_id),
            focus=await _focus(tx, request),
            open=await being_made(tx, agent_id=agent_id, since=now - DECIDING, most=MOST_OPEN),
            advice=await snapshots.advice(tx, agent_id=agent_id),
        )

    return read


async def _focus(tx: Tx, request: Request) -> Sequence[Found]:
    view = request.in_view
    if view is None:
        return ()
    return await before(tx, agent_id=request.agent_id, thread=view.session_id, place=view.first, most=FOCUS_LINES)


def widths(tokens: int) -> dict[Kind, Width]:
    """How widely each kind is searched, and how many are kept: of lines no more than could fit, for each takes time."""
    lines = min(max(tokens // TOKENS_A_LINE, FEWEST_LINES), MOST_LINES)
    return {"exchange": Width(LINES_SEARCHED, lines), **FEW}
