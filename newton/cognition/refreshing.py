"""The context of each turn: the current one of its session as long as that stands, else a new one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING
from uuid import UUID

from newton.clock import stopwatch
from newton.cognition import bundles, refresh, standing
from newton.cognition.assemble import Setting
from newton.cognition.bundle import Bundle, Update
from newton.cognition.context import Contexts
from newton.cognition.current import Current
from newton.cognition.framing import Choice
from newton.cognition.gather import Standing, Surroundings
from newton.cognition.refresh import CHOOSING, Coverage, How, Outlook, Verdict, judged
from newton.cognition.request import NO_FILTERS, InView, Request
from newton.cognition.score import scorer
from newton.cognition.signals import times
from newton.cognition.situation import FOCUS_LINES, Situation
from newton.cognition.standing import MOST_ENTERING, MOST_LEARNT, Beside, Changes
from newton.cognition.update import Entering, Held, renewed
from newton.concurrency import together
from newton.content.frames import frame_named
from newton.errors import ProviderError
from newton.heart.matching import called_for
from newton.ids import model_id, new_id
from newton.memory.recall import Cue, Found
from newton.memory.spans import Span

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

FIRST = "the session has no context yet"
NEWS = "the input asks for what is of these days"
ELSEWHERE = "the session was given its last context elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The context for an input, how it came about, and why; and the milliseconds that it took to tell."""

    bundle: Bundle
    how: How
    because: str
    judging_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """What there is now beside what the current context was made from."""

    cue: Cue
    around: Surroundings
    changes: Changes
    choice: Choice
    beside: Beside
    lines: Sequence[Found]
    times: Sequence[Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshing:
    """For the turns of sessions. Which context is the current one follows from the database, so that what was erased or
    made elsewhere counts here too."""

    contexts: Contexts

    async def for_turn(self, request: Request) -> Refreshed:
        """The context for an input of a session, stored if it is new. Raises as Contexts.build does."""
        started = stopwatch()
        current = self.contexts.shelf.of(request)
        if current is None:
            return await self._built(request, FIRST, None)
        web = self.contexts.web
        if web and web.is_asked(request, now=self.contexts.clock.now()):
            return await self._built(request, NEWS, None)
        now = await self._now(current, request)
        if now is None:
            return await self._built(request, ELSEWHERE, None)
        outlook = _outlook(current, request, now, choosing=self._choosing(request.input))
        verdict = judged(outlook, self.contexts.covering)
        spent = stopwatch() - started
        match verdict.how:
            case "built":
                return await self._built(request, verdict.because, now, judging_ms=spent)
            case "stood":
                self.contexts.shelf.stands(replace(current, view=request.in_view))
                return Refreshed(bundle=current.bundle, how="stood", because=verdict.because, judging_ms=spent)
            case _:
                return await self._renewed(current, request, now, verdict, spent)

    async def _now(self, current: Current, request: Request) -> _Now | None:
        """What there is now; None when the session has had another context since, or has this one no more."""
        contexts = self.contexts
        sources = contexts.sources()
        async with together() as tasks:
            embedding = tasks.create_task(self._cue(request))
            looking = tasks.create_task(sources.look_around(request, now=contexts.clock.now()))
            comparing = tasks.create_task(self._changes(current))
        (cue, core), around, changes = embedding.result(), looking.result(), comparing.result()
        if changes is None:
            return None
        async with contexts.db.work(request.agent_id) as tx:
            beside = await standing.beside(tx, current, cue, changes, least=contexts.covering.cosine)
        return _Now(
            cue=cue,
            around=around,
            changes=changes,
            choice=contexts.choice(request, core, before=current.bundle.frame.frame),
            beside=beside,
            lines=_out_of_view(current, request.in_view, around.situation),
            times=times(request.input, now=contexts.clock.now()),
        )

    async def _cue(self, request: Request) -> "tuple[Cue, Vector | None]":
        """The input as it is searched for, and the vector by which its frame is chosen."""
        contexts, text = self.contexts, request.input
        if contexts.embedder is None:
            return Cue(text=text), None
        try:
            async with asyncio.timeout(contexts.source_seconds / 2):
                vector = (await contexts.embedder.embed([text]))[0]
                core = await contexts.sources().core(request)
        except (ProviderError, TimeoutError):
            return Cue(text=text), None
        cue = Cue(text=text, vector=vector, model_id=model_id(contexts.embedder.identity))
        return cue, vector if core is None else core

    async def _changes(self, current: Current) -> Changes | None:
        async with self.contexts.db.work(current.bundle.agent_id) as tx:
            return await standing.changes(tx, current) if await standing.is_latest(tx, current) else None

    def _choosing(self, text: str) -> bool:
        """Whether the words of an input say that a choice is to be made."""
        frame = self.contexts.frames.get(CHOOSING)
        return frame is not None and bool(frame.evidence(text))

    async def _built(self, request: Request, because: str, now: _Now | None, *, judging_ms: float = 0.0) -> Refreshed:
        sources = self.contexts.sources()
        if now and now.cue.vector is not None:
            sources = replace(sources, known={request.input: now.cue.vector})
        made = await self.contexts.made(request, sources)
        self.contexts.shelf.stands(made)
        return Refreshed(bundle=made.bundle, how="built", because=because, judging_ms=judging_ms)

    async def _renewed(
        self, current: Current, request: Request, now: _Now, verdict: Verdict, judging_ms: float
    ) -> Refreshed:
        started = stopwatch()
        setting = _setting(current, request, now)
        frame = frame_named(self.contexts.frames, current.bundle.frame.frame)
        score = scorer(frame=frame, profile=current.bundle.profile, now=self.contexts.clock.now())
        entering = Entering(now.lines, [score(found) for found in now.beside.entering])
        done = renewed(Held(current.bundle.candidates, current.bundle.focus), setting, entering)
        if done is None:
            why = f"what always stands in it costs more than the {request.tokens:,} tokens that are left for it"
            return await self._built(request, why, now, judging_ms=judging_ms)
        assembly, because = done.assembly, verdict.because
        bundle = replace(
            current.bundle,
            bundle_id=new_id(),
            created_at=self.contexts.clock.now(),
            input=request.input,
            text=assembly.page.text,
            tokens=assembly.page.tokens,
            budget=setting.budget.total,
            frame=now.choice if now.choice.frame == frame.name else current.bundle.frame,
            setting=setting,
            layers=assembly.layers,
            candidates=assembly.candidates,
            focus=assembly.focus,
            timings_ms={"judge": judging_ms, "think": stopwatch() - started},
            update=Update(
                continues=current.bundle.bundle_id, because=because, entered=done.entered, gave_way=done.gave_way
            ),
        )
        async with self.contexts.db.work(request.agent_id) as tx:
            await bundles.keep(tx, bundle)
        self.contexts.shelf.stands(replace(current, bundle=bundle, view=request.in_view))
        return Refreshed(bundle=bundle, how=verdict.how, because=because, judging_ms=judging_ms)


def _setting(current: Current, request: Request, now: _Now) -> Setting:
    return replace(
        current.bundle.setting,
        input=request.input,
        focus=now.around.situation.focus,
        in_view=request.in_view,
        budget=replace(current.bundle.setting.budget, total=min(current.bundle.budget, request.tokens)),
    )


def _out_of_view(current: Current, view: InView | None, situation: Situation) -> Sequence[Found]:
    """The lines that have left the view since the context was last brought up to date, the nearest first."""
    if view is None or current.view is None:
        return ()
    first = current.view.first
    return [f for f in situation.focus if (f.place or 0) >= first and f.memory_id not in current.stated]


def _outlook(current: Current, request: Request, now: _Now, *, choosing: bool) -> Outlook:
    return Outlook(
        frame=now.choice.frame,
        before=current.bundle.frame.frame,
        forced=now.choice.forced,
        choosing=choosing and now.choice.frame == CHOOSING,
        coverage=_coverage(current, request.input, now.beside.cosine),
        tokens=request.tokens,
        cost=current.bundle.tokens,
        stale=[*now.changes.stale, *_moved(current.surroundings, now.around)],
        entering=len(now.lines) + len(now.beside.entering),
        much=_much(current, request, now),
    )


def _coverage(current: Current, text: str, cosine: float | None) -> Coverage:
    own = refresh.own_words(text)
    share = len(own & current.words) / len(own) if own else 1.0
    return Coverage(cosine=cosine, words=share, leaning=refresh.leans(text))


def _moved(before: Surroundings, now: Surroundings) -> list[str]:
    """What of that which stands in every context is another by now."""
    moved = [
        f"the {part.name} changed"
        for part in fields(Standing)
        if getattr(before.standing, part.name) != getattr(now.standing, part.name)
    ]
    if before.situation.advice != now.situation.advice:
        moved.append("the note on the record changed")
    if before.stack != now.stack:
        moved.append("the tasks changed")
    if _told(before.situation.open) != _told(now.situation.open):
        moved.append("what is being decided changed")
    return moved


def _told(memories: Sequence[Found]) -> Mapping[UUID, str]:
    return {found.memory_id: found.summary for found in memories}


def _much(current: Current, request: Request, now: _Now) -> str | None:
    """Why what is new, or asked for, is more than can be added to the context."""
    searched, learnt, entering = current.searched, now.changes.learnt, now.beside.entering
    if now.around.missing:
        return "what always stands in it could not be compared"
    alike = replace(
        request,
        input=searched.input,
        frame=searched.frame,
        in_view=searched.in_view,
        itself=searched.itself,
        tokens=searched.tokens,
    )
    if request.tokens > searched.tokens or alike != searched or request.filters != NO_FILTERS:
        return "another context is asked for"
    made_for = {(span.words, span.start) for span in current.bundle.setting.times}
    if not made_for.issuperset((span.words, span.start) for span in now.times):
        return "the input asks for a time that it was not made for"
    asked = called_for(now.changes.patterns, request.input, frame=now.choice.frame)
    if not current.stated.keys() >= {pattern.memory_id for pattern in asked}:
        return "the input asks for a procedure that is not in it"
    if len(learnt) >= MOST_LEARNT or len(entering) > MOST_ENTERING or now.beside.unjudged:
        return f"{len(learnt)} memories are new, too many to be added"
    return "more lines left the view than can be added" if len(now.lines) >= FOCUS_LINES else None
