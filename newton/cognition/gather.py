"""Everything one context is made from, read side by side. What is late or down is left out, and said."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.cognition import filters
from newton.cognition.artifacts import Artifacts, Looking, Once, looks
from newton.cognition.earlier import NEAREST, Selecting
from newton.cognition.filters import Filters
from newton.cognition.opening import substance
from newton.cognition.request import NO_FILTERS, Request
from newton.cognition.signals import intent, only_asks_when, relevant_events, times
from newton.cognition.situation import Situation, situation
from newton.cognition.web import Web
from newton.concurrency import together, within
from newton.content.profiles import Reach
from newton.db.pool import Database, Tx
from newton.dialogue import tasks as task_stack
from newton.dialogue.stack import NO_STACK, Stack
from newton.errors import ProviderError
from newton.heart import censors, events, identity, known, procedures
from newton.heart.censors import Censor
from newton.heart.events import Around, Recent
from newton.heart.known import Enquiry, Known
from newton.heart.matching import Pattern, called_for
from newton.heart.tenets import NOBODY, Identity
from newton.memory.memory import Kind
from newton.memory.ranking import FIRST, USUAL, Weighing
from newton.memory.recall import (
    Cue,
    Found,
    Recollection,
    Search,
    Width,
    details,
    recall,
)
from newton.memory.spans import Span

if TYPE_CHECKING:
    from asyncio import Task

    from newton.providers.embedding import Embedder, Vector

FEW: Mapping[Kind, Width] = {
    "fact": Width(searched=30, kept=30),
    "episode": Width(searched=10, kept=10),
    "procedure": Width(searched=10, kept=10),
    "passage": Width(searched=20, kept=20),
    "event": Width(searched=10, kept=10),
    "decision": Width(searched=20, kept=20),
}
LINES_SEARCHED = 200  # by meaning and as many by words; what stands beside the best of them comes on top
TOKENS_A_LINE = 28  # fewer than most lines cost, so that what is kept more than fills the context
FEWEST_LINES, MOST_LINES = 40, 300
MOST_CALLED_FOR = 10  # procedures

NO_ARTIFACTS = Artifacts()

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds whatever the input is: who the agent is, and what is forbidden."""

    identity: Identity = NOBODY
    censors: Sequence[Censor] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Whom and what the input names, and what each procedure is asked for by: by a name, by words, by a type."""

    known: Known = field(default_factory=Known)
    patterns: Sequence[Pattern] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known without any search; `stack` is what the session is at. `missing` names the sources that gave
    nothing, and why."""

    standing: Standing
    situation: Situation
    missing: Mapping[str, str]
    stack: Stack = NO_STACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the sources gave. `core` is the vector of the input behind its polite opening, None when it has none.

    `practice` are procedures that the input seems to ask for and that no search has found, `artifacts` what the session
    has come to in short; `times` are those that the input asks for; `missing` names the sources that gave nothing, or
    less, and why.
    """

    recalled: Recollection
    surroundings: Surroundings
    core: "Vector | None"
    missing: Mapping[str, str]
    knowledge: Knowledge = field(default_factory=Knowledge)
    recent: Recent = field(default_factory=Recent)
    practice: Sequence[Found] = ()
    artifacts: Artifacts = NO_ARTIFACTS
    filters: Filters = NO_FILTERS
    times: Sequence[Span] = ()

    @property
    def standing(self) -> Standing:
        return self.surroundings.standing

    @property
    def situation(self) -> Situation:
        return self.surroundings.situation


@dataclass(slots=True)
class _Reading:
    """Sources that are asked side by side, each in its own unit of work and for at most so many seconds."""

    seconds: float
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def of(self, name: str, source: Awaitable[T], *, instead: T) -> T:
        try:
            return await within(source, seconds=self.seconds)
        except TimeoutError:
            self.missing[name] = f"no answer within {self.seconds:g} seconds"
            return instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request with what every source needs to know of it: how far to look, what is hidden, what time it is, and which
    times are asked for."""

    request: Request
    reach: Reach
    hidden: Sequence[UUID]
    now: datetime
    times: Sequence[Span] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a context comes from. `seconds` is the deadline of each source; `web` is asked before the others, when an
    input wants what is of these days; `known` are texts whose vectors are known already."""

    db: Database
    embedder: "Embedder | None"
    seconds: float
    weighing: Weighing = USUAL
    selecting: Selecting = NEAREST
    web: Web | None = None
    known: "Mapping[str, Vector]" = field(default_factory=dict[str, "Vector"])

    async def gather(self, request: Request, *, reach: Reach, now: datetime) -> Gathered:
        """Asks all sources at once, as far as any profile that may be chosen reaches. `now` is the moment for which the
        context is made."""
        wanted = times(request.input, now=now) or request.filters.times
        asked = Asked(request=request, reach=reach, hidden=await self._hidden(request), now=now, times=wanted)
        reading = _Reading(self.seconds)
        await self._search_the_web(asked, reading)
        if self.embedder is None:
            return await self._gathered(asked, reading)
        once = Once(self.embedder, self.known)
        try:
            return await replace(self, embedder=once)._gathered(asked, reading)
        finally:
            once.leave()

    async def _gathered(self, asked: Asked, reading: _Reading) -> Gathered:
        request, now = asked.request, asked.now
        nothing = Recollection(cue=Cue(text=request.input), found=(), missing={})
        async with together() as tasks:

            def ask(name: str, source: Callable[[Tx, Asked], Awaitable[T]], *, instead: T) -> "Task[T]":
                return tasks.create_task(reading.of(name, self._read(asked, source), instead=instead))

            stacking = tasks.create_task(self._stack(request, reading))
            recalling = tasks.create_task(reading.of("memories", self._recall(asked, stacking), instead=nothing))
            looking = tasks.create_task(self._look_around(request, now=now))
            knowing = ask("entities and procedures", _knowledge, instead=Knowledge())
            happened = ask("events", _recent, instead=Recent()) if request.session_id else None
            core = tasks.create_task(reading.of("core", self._core(request, stacking), instead=None))
            earlier = tasks.create_task(reading.of("session artifacts", self._artifacts(asked), instead=NO_ARTIFACTS))
        recalled, around = recalling.result(), replace(looking.result(), stack=stacking.result())
        gathered = Gathered(
            recalled=recalled,
            surroundings=around,
            core=core.result(),
            knowledge=knowing.result(),
            recent=happened.result() if happened else Recent(),
            artifacts=earlier.result(),
            filters=request.filters,
            times=asked.times,
            missing={**recalled.missing, **reading.missing, **around.missing},
        )
        return await self._practised(gathered, asked, reading)

    async def _search_the_web(self, asked: Asked, reading: _Reading) -> None:
        if self.web is None or not self.web.is_asked(asked.request, now=asked.now):
            return
        try:
            await reading.of("web search", self.web.look(asked.request, now=asked.now), instead=None)
        except ProviderError as error:
            reading.missing["web search"] = error.what

    async def _artifacts(self, asked: Asked) -> Artifacts:
        if not looks(asked.request):
            return NO_ARTIFACTS
        looking = Looking(db=self.db, embedder=self.embedder, seconds=self.seconds / 2, selecting=self.selecting)
        return await looking.read(asked.request, asked.hidden)

    async def look_around(self, request: Request, *, now: datetime) -> Surroundings:
        """What there is beside memories, without a search for any."""
        reading = _Reading(self.seconds)
        async with together() as tasks:
            stacking = tasks.create_task(self._stack(request, reading))
            looking = tasks.create_task(self._look_around(request, now=now))
        around = looking.result()
        return replace(around, stack=stacking.result(), missing={**around.missing, **reading.missing})

    async def _look_around(self, request: Request, *, now: datetime) -> Surroundings:
        asked, reading = Asked(request=request, reach=Reach(), hidden=(), now=now), _Reading(self.seconds)
        async with together() as tasks:
            standing = tasks.create_task(
                reading.of("identity and constraints", self._read(asked, _standing), instead=Standing())
            )
            situating = tasks.create_task(reading.of("session", self._read(asked, _situation), instead=Situation()))
        return Surroundings(
            standing=standing.result(),
            situation=situating.result().admitted(request.filters),
            missing=reading.missing,
        )

    async def _hidden(self, request: Request) -> Sequence[UUID]:
        itself = [request.itself] if request.itself else []
        if request.filters == NO_FILTERS:
            return itself
        async with self.db.work(request.agent_id) as tx:
            return [*itself, *await filters.hidden(tx, request.filters, agent_id=request.agent_id)]

    async def _stack(self, request: Request, reading: _Reading) -> Stack:
        """Where the work of the session stands. The search waits for it, so it may take half as long at most."""
        if request.session_id is None:
            return NO_STACK
        quicker = _Reading(self.seconds / 2, reading.missing)
        return await quicker.of("tasks", self._stacked(request, request.session_id), instead=NO_STACK)

    async def _stacked(self, request: Request, session_id: UUID) -> Stack:
        async with self.db.work(request.agent_id) as tx:
            where = {"agent_id": request.agent_id, "session_id": session_id}
            return (await task_stack.tree(tx, **where, moment=request.as_of)).stack

    async def _recall(self, asked: Asked, stacking: "Task[Stack]") -> Recollection:
        """What is searched for is the input, with what is being done beside it."""
        request, current = asked.request, (await stacking).current
        search = Search(
            db=self.db,
            agent_id=request.agent_id,
            widths=self._widths(request),
            moment=request.as_of,
            hidden=asked.hidden,
            times=asked.times if self.weighing.timed else (),
            seconds=self.seconds / 2,
            weighing=_weighing(self.weighing, asked),
        )
        text = f"{request.input}\n{current.goal}" if current else request.input
        return await recall(text, embedder=self.embedder, search=search)

    async def _core(self, request: Request, stacking: "Task[Stack]") -> "Vector | None":
        """The same; with a task, of the whole input, for what is searched for is more than that."""
        return await self.core(request, whole=bool((await stacking).path))

    async def core(self, request: Request, *, whole: bool = False) -> "Vector | None":
        """The vector of what is said behind a polite opening; None without one, unless it is wanted of the `whole`
        input then, and where no frame is to be chosen."""
        core = substance(request.input)
        if self.embedder is None or request.frame or (core == request.input and not whole):
            return None
        try:
            return (await self.embedder.embed([core]))[0]
        except ProviderError:
            return None  # the memories were searched without it too, and that is told

    def _widths(self, request: Request) -> dict[Kind, Width]:
        """How widely each kind is searched that the request admits."""
        wanted = widths(request.tokens)
        return {k: w for k, w in wanted.items() if request.filters.admits(k) and k not in self.weighing.without}

    async def _read(self, asked: Asked, source: Callable[[Tx, Asked], Awaitable[T]]) -> T:
        async with self.db.work(asked.request.agent_id) as tx:
            return await source(tx, asked)

    async def _practised(self, gathered: Gathered, asked: Asked, reading: _Reading) -> Gathered:
        """With the procedures that are asked for and that no search has found; hardly ever is there one."""
        met = {found.memory_id for found in gathered.recalled.found} | set(asked.hidden)
        patterns, types = gathered.knowledge.patterns, gathered.knowledge.known.types
        meant = called_for(patterns, asked.request.input, types=types)[:MOST_CALLED_FOR]
        unmet = [pattern.memory_id for pattern in meant if pattern.memory_id not in met]
        if not unmet:
            return gathered

        async def read(tx: Tx, asked: Asked) -> Sequence[Found]:
            return await details(tx, unmet, agent_id=asked.request.agent_id, moment=asked.request.as_of)

        found = await reading.of("procedures", self._read(asked, read), instead=())
        missing = {**gathered.missing, **reading.missing}
        return replace(gathered, practice=found, missing=missing)


def _weighing(usual: Weighing, asked: Asked) -> Weighing:
    """Where the input says nothing but a time, what is of it comes before all the rest."""
    if usual.timed and only_asks_when(asked.request.input, asked.times):
        return replace(usual, timed=FIRST)
    return usual


async def _standing(tx: Tx, asked: Asked) -> Standing:
    agent_id = asked.request.agent_id
    return Standing(
        identity=await identity.read(tx, agent_id=agent_id, moment=asked.request.as_of),
        censors=await _forbidden(tx, asked.request),
    )


async def _forbidden(tx: Tx, request: Request) -> Sequence[Censor]:
    if request.as_of is None:
        return await censors.in_force(tx, agent_id=request.agent_id, model_id=None)
    return await censors.in_force_at(tx, agent_id=request.agent_id, moment=request.as_of)


async def _knowledge(tx: Tx, asked: Asked) -> Knowledge:
    request = asked.request
    enquiry = Enquiry(
        agent_id=request.agent_id,
        text=request.input,
        now=asked.now,
        salient=asked.reach.salient,
        depth=asked.reach.depth,
        moment=request.as_of,
        hidden=asked.hidden,
    )
    patterns = await procedures.patterns(tx, agent_id=request.agent_id)
    return Knowledge(known=await known.known(tx, enquiry), patterns=patterns)


async def _recent(tx: Tx, asked: Asked) -> Recent:
    request, reach = asked.request, asked.reach
    assert request.session_id is not None, "nothing is late without a session"
    around = Around(
        agent_id=request.agent_id,
        session_id=request.session_id,
        events=reach.events,
        sessions=reach.sessions,
        moment=request.as_of,
        hidden=asked.hidden,
        types=relevant_events(intent(request.input)),
    )
    return await events.recent(tx, around)


async def _situation(tx: Tx, asked: Asked) -> Situation:
    return await situation(tx, asked.request, now=asked.now)


def widths(tokens: int) -> dict[Kind, Width]:
    """How widely each kind is searched, and how many are kept: of lines no more than could fit, for each takes time."""
    lines = min(max(tokens // TOKENS_A_LINE, FEWEST_LINES), MOST_LINES)
    return {"exchange": Width(LINES_SEARCHED, lines), **FEW}
