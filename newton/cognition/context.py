"""The pipeline: frame, budget, recall, score, fill, render, and the bundle kept with its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from newton.brain import snapshots
from newton.brain.snapshots import Advice
from newton.clock import Clock, stopwatch
from newton.cognition import bundles, framing
from newton.cognition.assemble import Assembly, InView, Setting, assemble
from newton.cognition.budget import Budget, allocate
from newton.cognition.bundle import Bundle
from newton.cognition.constraints import constraints
from newton.cognition.framing import Choice
from newton.cognition.opening import substance
from newton.cognition.render import Block, approach
from newton.cognition.score import scorer
from newton.concurrency import together
from newton.content.frames import Frame, frame_named
from newton.content.profiles import Profile, profile_named
from newton.db.pool import Database, Tx
from newton.errors import InputError
from newton.heart import censors, procedures
from newton.heart.censors import Censor
from newton.ids import new_id
from newton.memory.memory import Kind
from newton.memory.recall import Cue, Found, Recollection, Search, Width, before, being_made, recall
from newton.memory.representations import Count

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
LINES_SEARCHED = 200
TOKENS_A_LINE = 35  # fewer than most lines cost, so that what is kept more than fills the context
FEWEST_LINES, MOST_LINES = 40, 250
MOST_TOKENS = 10_000_000
FOCUS_LINES = 12
DECIDING = timedelta(days=3)  # so long a decision that is not carried out is taken to be in the making
MOST_OPEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One input that wants a context. `frame` and `profile` force what is otherwise chosen."""

    agent_id: UUID
    input: str
    tokens: int
    frame: str | None = None
    profile: str | None = None
    session_id: UUID | None = None
    in_view: InView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What does not come from the search: the session's last frame, its lines just out of view, what is being decided,
    what the record of decisions advises, what is forbidden, and the procedures that the input asks for by name."""

    frame: str | None = None
    focus: tuple[Found, ...] = ()
    open: tuple[Found, ...] = ()
    advice: Advice | None = None
    censors: Sequence[Censor] = ()
    triggered: frozenset[UUID] = frozenset()


@dataclass(slots=True)
class Laps:
    """Milliseconds of each stage, in the order in which they end."""

    started: float = field(default_factory=stopwatch)
    stages: dict[str, float] = field(default_factory=dict[str, float])

    def end(self, stage: str) -> None:
        self.stages[stage] = stopwatch() - self.started - sum(self.stages.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How this input is looked at."""

    choice: Choice
    frame: Frame
    profile: Profile
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """Makes contexts. Everything it holds is fixed for the life of the process."""

    db: Database
    clock: Clock
    count: Count
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    embedder: "Embedder | None"
    directions: "Mapping[str, Vector]"
    header_tokens: Mapping[str, int]

    async def build(self, request: Request) -> Bundle:
        """The best context for the input within its tokens, stored with the reason for every candidate.

        Raises InputError for a budget below 1 or beyond reason and NotFoundError for an unknown frame or profile.
        """
        if request.tokens < 1:
            raise InputError(f"A budget of {request.tokens} tokens holds nothing.", hint="Give 1 or more.")
        if request.tokens > MOST_TOKENS:
            raise InputError(f"No model reads {request.tokens:,} tokens.", hint=f"Give at most {MOST_TOKENS:,}.")
        laps = Laps()
        async with together() as tasks:
            recalling = tasks.create_task(self._recall(request))
            looking_back = tasks.create_task(self._look_back(request))
        recalled, past = recalling.result(), looking_back.result()
        laps.end("recall")
        plan = self._plan(request, recalled.cue, past)
        assembly = self._think(request, past, plan, recalled.found)
        laps.end("think")
        bundle = self._bundle(request, plan, assembly, missing=recalled.missing, timings=laps.stages)
        async with self.db.work(request.agent_id) as tx:
            await bundles.keep(tx, bundle)
        return bundle

    async def _recall(self, request: Request) -> Recollection:
        search = Search(db=self.db, agent_id=request.agent_id, widths=widths(request.tokens))
        return await recall(substance(request.input), embedder=self.embedder, search=search)

    async def _look_back(self, request: Request) -> Past:
        """What the session holds that is not in view, and what is forbidden."""
        async with self.db.work(request.agent_id) as tx:
            known = await censors.in_force(tx, agent_id=request.agent_id, model_id=None)
            triggers = await procedures.triggers(tx, agent_id=request.agent_id)
            asked = procedures.triggered(triggers, request.input)
            since = self.clock.now() - DECIDING
            always = Past(
                open=await being_made(tx, agent_id=request.agent_id, since=since, most=MOST_OPEN),
                advice=await snapshots.advice(tx, agent_id=request.agent_id),
                censors=known,
                triggered=asked,
            )
            if request.session_id is None:
                return always
            frame = await bundles.frame_of(tx, agent_id=request.agent_id, session_id=request.session_id)
            return replace(always, frame=frame, focus=await self._focus(tx, request) if request.in_view else ())

    async def _focus(self, tx: Tx, request: Request) -> tuple[Found, ...]:
        assert request.in_view is not None
        return await before(
            tx,
            agent_id=request.agent_id,
            thread=request.in_view.session_id,
            place=request.in_view.first,
            most=FOCUS_LINES,
        )

    def _plan(self, request: Request, cue: Cue, past: Past) -> Plan:
        choice = self._choice(request, cue, past)
        frame = frame_named(self.frames, choice.frame)
        profile = profile_named(self.profiles, request.profile or frame.profile)
        budget = allocate(request.tokens, shares=frame.budget.shares)
        return Plan(choice=choice, frame=frame, profile=profile, budget=budget)

    def _choice(self, request: Request, cue: Cue, past: Past) -> Choice:
        if request.frame:
            return framing.forced(request.frame)
        return framing.choose(
            self.frames, request.input, vector=cue.vector, directions=self.directions, prior=past.frame
        )

    def _think(self, request: Request, past: Past, plan: Plan, found: Sequence[Found]) -> Assembly:
        most = plan.budget.layers["frame"]
        setting = Setting(
            input=request.input,
            budget=plan.budget,
            profile=plan.profile,
            approach=approach(plan.frame.name, plan.frame.questions, count=self.count, most=most),
            constraints=constraints(
                past.censors,
                domains=plan.frame.domains,
                most=plan.budget.layers["censors"] - self.header_tokens["censors"],
            ),
            focus=past.focus,
            open=[one for one in past.open if one.memory_id not in {f.memory_id for f in found}],
            advice=past.advice and Block(f"{past.advice.text}\n", past.advice.tokens),
            triggered=past.triggered,
            in_view=request.in_view,
            header_tokens=self.header_tokens,
        )
        score = scorer(frame=plan.frame, profile=plan.profile, now=self.clock.now())
        return assemble([score(f) for f in found], setting)

    def _bundle(
        self,
        request: Request,
        plan: Plan,
        assembly: Assembly,
        *,
        missing: Mapping[str, str],
        timings: Mapping[str, float],
    ) -> Bundle:
        return Bundle(
            bundle_id=new_id(),
            agent_id=request.agent_id,
            session_id=request.session_id,
            created_at=self.clock.now(),
            input=request.input,
            text=assembly.page.text,
            tokens=assembly.page.tokens,
            budget=request.tokens,
            frame=plan.choice,
            profile=plan.profile,
            layers=assembly.layers,
            candidates=assembly.candidates,
            focus=assembly.focus,
            missing=missing,
            timings_ms=timings,
        )


def widths(tokens: int) -> dict[Kind, Width]:
    """How widely each kind is searched, and how many are kept: of lines no more than could fit, for each takes time."""
    lines = min(max(tokens // TOKENS_A_LINE, FEWEST_LINES), MOST_LINES)
    return {"exchange": Width(LINES_SEARCHED, lines), **FEW}
