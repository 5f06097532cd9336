"""The pipeline: gather, then frame, budget, score, fill and render, then keep the bundle with its reasons."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from newton.clock import Clock, stopwatch
from newton.cognition import bundles, framing
from newton.cognition.additional import Additional, fitted, lines
from newton.cognition.assemble import Assembly, Setting, assemble
from newton.cognition.budget import MOST_TOKENS, Budget, allocate, involved, with_session
from newton.cognition.bundle import Bundle
from newton.cognition.candidates import Candidates, candidates
from newton.cognition.constraints import constraints
from newton.cognition.current import Current, Shelf
from newton.cognition.earlier import NEAREST, Earlier, Selecting
from newton.cognition.framing import Choice
from newton.cognition.gather import Gathered, Sources
from newton.cognition.identity import presence, room
from newton.cognition.likeness import Likeness
from newton.cognition.refresh import ENOUGH, Covering
from newton.cognition.render import Block, approach, day_tokens
from newton.cognition.request import Request
from newton.cognition.score import scorer
from newton.cognition.stacked import Stacked, stacked
from newton.cognition.web import Web
from newton.concurrency import within
from newton.content.frames import Frame, frame_named
from newton.content.profiles import Profile, Reach, profile_for, profile_named, widest
from newton.db.pool import Database
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.memory import Count
from newton.memory.ranking import USUAL, Weighing
from newton.memory.representations import bullet
from newton.spans import Noting, span

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


@dataclass(slots=True)
class Laps:
    """Milliseconds of each stage, in the order in which they end."""

    started: float = field(default_factory=stopwatch)
    stages: dict[str, float] = field(default_factory=dict[str, float])

    def end(self, stage: str) -> None:
        self.stages[stage] = stopwatch() - self.started - sum(self.stages.values())


class Notes(NamedTuple):
    """What was missing, and how long the stages took."""

    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How this input is looked at, and the moment for which it is."""

    now: datetime
    choice: Choice
    frame: Frame
    profile: Profile
    budget: Budget


class Made(NamedTuple):
    """A context before it is a bundle."""

    plan: Plan
    setting: Setting
    assembly: Assembly


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """Makes contexts. All that it holds is fixed for the life of the process, but for `shelf`: what it made lately."""

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
    covering: Covering = ENOUGH
    shelf: Shelf = field(default_factory=Shelf)
    weighing: Weighing = USUAL
    selecting: Selecting = NEAREST
    web: Web | None = None

    async def build(self, request: Request) -> Bundle:
        """The best context for the input within its tokens, stored with the reason for every candidate.

        Outside of a session the same request is given the same context for half a minute, unless anything is written.
        Raises InputError for a budget below 1 or beyond reason and for an end before the beginning, and NotFoundError
        for an unknown frame or profile.
        """
        _ensure_sensible(request)
        if request.session_id:
            return (await self.made(request)).bundle
        moment = await self.db.moment()
        if known := self.shelf.again(request, moment=moment, now=self.clock.now()):
            return known
        bundle = (await self._thought(request, self.sources())).bundle
        async with self.db.work(request.agent_id) as tx:
            writer = await bundles.keep(tx, bundle)
        if not bundle.missing:  # what was down may be up again
            self.shelf.keep(request, bundle, moment=moment, writer=writer)
        return bundle

    async def made(self, request: Request, sources: Sources | None = None) -> Current:
        """Such a context, stored, and what it was made from."""
        current = await self._thought(request, sources or self.sources())
        async with self.db.work(request.agent_id) as tx:
            await bundles.keep(tx, current.bundle)
        return current

    def sources(self) -> Sources:
        return Sources(
            db=self.db,
            embedder=self.embedder,
            seconds=self.source_seconds,
            weighing=self.weighing,
            selecting=self.selecting,
            web=self.web,
        )

    async def _thought(self, request: Request, sources: Sources) -> Current:
        with span("context") as noting:
            return _noted(noting, await self._chosen(request, sources))

    async def _chosen(self, request: Request, sources: Sources) -> Current:
        laps, now = Laps(), request.as_of or self.clock.now()
        gathered = await sources.gather(request, reach=self._reach(request), now=now)
        laps.end("recall")
        vector = gathered.recalled.cue.vector if gathered.core is None else gathered.core
        choice = self.choice(request, vector, before=gathered.surroundings.situation.frame)
        plan = self._plan(request, await self._settled(request, choice), now, gathered)
        at_hand = candidates(gathered, request.input, reach=plan.profile.reach, frame=plan.frame.name)
        added = self._added(request, plan.budget)
        setting = self._setting(request, gathered, plan, at_hand, added)
        score = scorer(frame=plan.frame, profile=plan.profile, now=plan.now, bearing=at_hand.bearing)
        made = Made(plan, setting, assemble([score(f) for f in at_hand.found], setting))
        laps.end("think")
        notes = Notes({**gathered.missing, **left_out(added), **untold(setting.tasks)}, laps.stages)
        bundle = self._bundle(request, made, at_hand, notes)
        return Current(
            bundle=bundle,
            since=bundle.bundle_id,
            searched=request,
            cue=gathered.recalled.cue,
            view=request.in_view,
            surroundings=gathered.surroundings,
        )

    def _reach(self, request: Request) -> Reach:
        """As far as any profile looks that may come to be chosen: which one is known only after the search."""
        names = [request.profile] if request.profile else sorted({f.profile for f in self._frames(request)})
        named = [profile_named(self.profiles, name) for name in names]
        chosen = {one for profile in named for one in (profile.by_frame.values() if profile.by_frame else ())}
        chosen |= {profile.otherwise for profile in named if profile.by_frame}
        return widest(one.reach for one in (*named, *(self.profiles[name] for name in chosen)))

    def _frames(self, request: Request) -> Iterable[Frame]:
        return [frame_named(self.frames, request.frame)] if request.frame else self.frames.values()

    def _added(self, request: Request, budget: Budget) -> Additional:
        most = budget.layers.get("additional", 0) - self.header_tokens["additional"]
        return fitted(lines(request.additional or "", count=self.count), most=most)

    def _plan(self, request: Request, choice: Choice, now: datetime, gathered: Gathered) -> Plan:
        frame = frame_named(self.frames, choice.frame)
        profile = profile_for(self.profiles, request.profile or frame.profile, frame=frame.name)
        added = sum(block.tokens for block in lines(request.additional or "", count=self.count))
        budget = allocate(
            request.tokens,
            shares=frame.budget.shares,
            complexity=involved(request.input) if request.adapt else None,
            stakes=frame.default_stakes,
            stack=bool(gathered.surroundings.stack.path),
            additional=added and added + self.header_tokens["additional"],
        )
        most = self._earlier(gathered).room(gathered.artifacts.found, request.in_view)
        budget = with_session(budget, most)
        return Plan(now=now, choice=choice, frame=frame, profile=profile, budget=budget)

    def _earlier(self, gathered: Gathered) -> Earlier:
        return Earlier(selecting=self.selecting, lines=gathered.artifacts.lines)

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
            name = await within(self.tiebreak(request.input, close), seconds=self.source_seconds)
        except TimeoutError:
            return choice
        return framing.settled(choice, name or "")

    def _setting(
        self, request: Request, gathered: Gathered, plan: Plan, at_hand: Candidates, added: Additional
    ) -> Setting:
        most, headers = plan.budget.layers, self.header_tokens
        situation, standing = gathered.situation, gathered.standing
        found = {f.memory_id for f in at_hand.found}
        return Setting(
            input=request.input,
            budget=plan.budget,
            profile=plan.profile,
            identity=presence(standing.identity, most=room(most, headers)),
            floor=plan.frame.floor,
            needed=request.adapt,
            approach=approach(
                plan.frame.name, plan.frame.questions, plan.frame.censors, count=self.count, most=most["frame"]
            ),
            constraints=constraints(
                standing.censors, domains=plan.frame.domains, most=most["censors"] - headers["censors"]
            ),
            focus=situation.focus,
            open=[one for one in situation.open if one.memory_id not in found],
            advice=situation.advice and Block(f"{situation.advice.text}\n", situation.advice.tokens),
            additional=added.blocks,
            called_for=at_hand.called_for,
            unsearched=at_hand.unsearched,
            in_view=request.in_view,
            header_tokens=headers,
            day_tokens=day_tokens(self.count),
            earlier=self._earlier(gathered),
            times=at_hand.times,
            blank=_blank(at_hand, self.count),
            tasks=stacked(gathered.surroundings.stack, most, headers, count=self.count),
        )

    def _bundle(
        self,
        request: Request,
        made: Made,
        at_hand: Candidates,
        notes: Notes,
    ) -> Bundle:
        plan, page = made.plan, made.assembly.page
        return Bundle(
            bundle_id=new_id(),
            agent_id=request.agent_id,
            session_id=request.session_id,
            created_at=self.clock.now(),
            as_of=request.as_of,
            input=request.input,
            identity=made.assembly.identity,
            text=page.text,
            tokens=page.tokens,
            budget=plan.budget.total,
            frame=plan.choice,
            frame_edition=plan.frame.edition,
            profile=plan.profile,
            setting=made.setting,
            layers=made.assembly.layers,
            candidates=made.assembly.candidates,
            focus=made.assembly.focus,
            recent=at_hand.recent,
            filters=request.filters,
            missing=notes.missing,
            timings_ms=notes.timings_ms,
        )


def _blank(at_hand: Candidates, count: Count) -> Block | None:
    if not at_hand.blank:
        return None
    said = bullet(f"Nothing in memory is of the time asked for ({', '.join(span.words for span in at_hand.times)}).")
    return Block(said, count(said))


def left_out(added: Additional) -> Mapping[str, str]:
    """What of the caller's words is not in the context, in the words of `missing`."""
    return {"additional": f"no room for the last {added.left_out} of its lines"} if added.left_out else {}


def untold(tasks: Stacked) -> Mapping[str, str]:
    """What of the stack of tasks is not in the context."""
    return {"tasks": f"no room for {tasks.left_out} of them"} if tasks.left_out else {}


def _noted(noting: Noting, current: Current) -> Current:
    """What a trace is told of it."""
    bundle = current.bundle
    noting.note(bundle_id=str(bundle.bundle_id), frame=bundle.frame.frame, tokens=bundle.tokens)
    noting.note(**{f"{stage}_ms": ms for stage, ms in bundle.timings_ms.items()})
    return current


def _ensure_sensible(request: Request) -> None:
    if request.tokens < 1:
        raise InputError(f"A budget of {request.tokens} tokens holds nothing.", hint="Give 1 or more.")
    since, until = request.filters.since, request.filters.until
    if since and until and since >= until:
        raise InputError(
            f"Nothing is both from {since:%Y-%m-%d %H:%M} on and before {until:%Y-%m-%d %H:%M}.",
            hint="Give a since that is earlier than the until.",
        )
    if request.tokens > MOST_TOKENS:
        raise InputError(f"No model reads {request.tokens:,} tokens.", hint=f"Give at most {MOST_TOKENS:,}.")
