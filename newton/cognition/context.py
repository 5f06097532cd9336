"""The pipeline: gather, then frame, budget, score, fill and render, then keep the bundle with its reasons."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from newton.clock import Clock, stopwatch
from newton.cognition import bundles, framing, standing
from newton.cognition.assemble import Assembly, Setting, assemble
from newton.cognition.budget import Budget, allocate, involved
from newton.cognition.bundle import Bundle
from newton.cognition.constraints import constraints
from newton.cognition.current import Current, Recent
from newton.cognition.framing import Choice
from newton.cognition.gather import Sources, Surroundings
from newton.cognition.identity import presence, room
from newton.cognition.likeness import Likeness
from newton.cognition.refresh import USUAL, Covering
from newton.cognition.render import Block, approach
from newton.cognition.request import Request
from newton.cognition.score import UNKNOWN, Bearing, scorer
from newton.cognition.usage import keywords
from newton.concurrency import timely
from newton.content.frames import Frame, frame_named
from newton.content.profiles import Profile, profile_for
from newton.db.pool import Database
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.recall import Found
from newton.memory.representations import Count

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

MOST_TOKENS = 10_000_000


@dataclass(slots=True)
class Laps:
    """Milliseconds of each stage, in the order in which they end."""

    started: float = field(default_factory=stopwatch)
    stages: dict[str, float] = field(default_factory=dict[str, float])

    def end(self, stage: str) -> None:
        self.stages[stage] = stopwatch() - self.started - sum(self.stages.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How this input is looked at, and the moment for which it is."""

    now: datetime
    choice: Choice
    frame: Frame
    profile: Profile
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """Makes contexts. All that it holds is fixed for the life of the process, but for `recent`: what it made lately."""

    db: Database
    clock: Clock
    count: Count
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    embedder: "Embedder | None"
    likeness: Likeness | None
    header_tokens: Mapping[str, int]
    source_seconds: float
    tiebreak: Callable[[str, Sequence[Frame]], Awaitable[str | None]] | None = None
    covering: Covering = USUAL
    recent: Recent = field(default_factory=Recent)

    async def build(self, request: Request) -> Bundle:
        """The best context for the input within its tokens, stored with the reason for every candidate.

        Outside of a session the same request is given the same context for half a minute, unless anything is written.
        Raises InputError for a budget below 1 or beyond reason and NotFoundError for an unknown frame or profile.
        """
        _ensure_sensible(request)
        if request.session_id:
            return (await self.made(request)).bundle
        async with self.db.work(request.agent_id) as tx:
            moment = await standing.moment(tx, agent_id=request.agent_id)
        if known := self.recent.again(request, moment=moment, now=self.clock.now()):
            return known
        bundle = (await self._thought(request, self.sources())).bundle
        async with self.db.work(request.agent_id) as tx:
            await bundles.keep(tx, bundle)
            writer = await standing.writer(tx, agent_id=request.agent_id)
        self.recent.keep(request, bundle, moment=moment, writer=writer)
        return bundle

    async def made(self, request: Request, sources: Sources | None = None) -> Current:
        """Such a context, stored, and what it was made from."""
        current = await self._thought(request, sources or self.sources())
        async with self.db.work(request.agent_id) as tx:
            await bundles.keep(tx, current.bundle)
        return current

    def sources(self) -> Sources:
        return Sources(db=self.db, embedder=self.embedder, seconds=self.source_seconds)

    async def _thought(self, request: Request, sources: Sources) -> Current:
        laps, now = Laps(), request.as_of or self.clock.now()
        gathered = await sources.gather(request, now=now)
        laps.end("recall")
        before = gathered.situation.frame
        vector = gathered.recalled.cue.vector if gathered.core is None else gathered.core
        plan = self._plan(request, await self._settled(request, self.choice(request, vector, before=before)), now)
        setting = self._setting(request, gathered.surroundings, plan, found=gathered.recalled.found)
        bearing = Bearing(keywords=keywords(request.input)) if plan.profile.boosts.keyword else UNKNOWN
        score = scorer(profile=plan.profile, now=plan.now, frame=plan.frame, bearing=bearing)
        assembly = assemble([score(f) for f in gathered.recalled.found], setting)
        laps.end("think")
        return Current(
            bundle=self._bundle(request, plan, assembly, missing=gathered.missing, timings=laps.stages),
            searched=request,
            cue=gathered.recalled.cue,
            view=request.in_view,
            setting=setting,
            surroundings=gathered.surroundings,
        )

    def _plan(self, request: Request, choice: Choice, now: datetime) -> Plan:
        frame = frame_named(self.frames, choice.frame)
        profile = profile_for(self.profiles, request.profile or frame.profile, frame=frame.name)
        budget = allocate(
            request.tokens,
            shares=frame.budget.shares,
            complexity=involved(request.input) if request.adapt else None,
            stakes=frame.default_stakes,
        )
        return Plan(now=now, choice=choice, frame=frame, profile=profile, budget=budget)

    def choice(self, request: Request, vector: "Vector | None", *, before: str | None) -> Choice:
        """How the input is looked at, in a session that was looked at in the frame `before`."""
        if request.frame:
            return framing.forced(request.frame)
        return framing.choose(self.frames, request.input, vector=vector, likeness=self.likeness, prior=before)

    async def _settled(self, request: Request, choice: Choice) -> Choice:
        """The choice; an unsure one after a model was asked, if one may be. Its silence changes nothing."""
        if self.tiebreak is None or not choice.unsure:
            return choice
        close = [self.frames[name] for name in choice.close]
        try:
            name = await timely(self.tiebreak(request.input, close), seconds=self.source_seconds)
        except TimeoutError:
            return choice
        return framing.settled(choice, name or "")

    def _setting(self, request: Request, around: Surroundings, plan: Plan, *, found: Sequence[Found]) -> Setting:
        most, headers = plan.budget.layers, self.header_tokens
        situation, standing = around.situation, around.standing
        return Setting(
            input=request.input,
            budget=plan.budget,
            profile=plan.profile,
            identity=presence(standing.identity, most=room(most, headers)),
            floor=plan.frame.floor,
            needed=request.adapt,
            approach=approach(plan.frame.name, plan.frame.questions, count=self.count, most=most["frame"]),
            constraints=constraints(
                standing.censors, domains=plan.frame.domains, most=most["censors"] - headers["censors"]
            ),
            focus=situation.focus,
            open=[one for one in situation.open if one.memory_id not in {f.memory_id for f in found}],
            advice=situation.advice and Block(f"{situation.advice.text}\n", situation.advice.tokens),
            triggered=standing.triggered,
            in_view=request.in_view,
            header_tokens=headers,
        )

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
            identity=assembly.identity,
            text=assembly.page.text,
            tokens=assembly.page.tokens,
            budget=plan.budget.total,
            frame=plan.choice,
            profile=plan.profile,
            layers=assembly.layers,
            candidates=assembly.candidates,
            focus=assembly.focus,
            missing=missing,
            timings_ms=timings,
        )


def _ensure_sensible(request: Request) -> None:
    if request.tokens < 1:
        raise InputError(f"A budget of {request.tokens} tokens holds nothing.", hint="Give 1 or more.")
    if request.tokens > MOST_TOKENS:
        raise InputError(f"No model reads {request.tokens:,} tokens.", hint=f"Give at most {MOST_TOKENS:,}.")
