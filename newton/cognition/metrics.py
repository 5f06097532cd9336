"""How well contexts serve: figures of a period with their targets, from what was loaded and what replies used. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.cognition.refresh import How

Verdict = Literal["ok", "low", "high", "too few"]

FEWEST_TURNS, FEWEST_FACTS = 10, 5
SLOWEST = 0.95  # of the cold starts so many are at most as long as the one that is told


class Item(NamedTuple):
    """A memory that stood in a context: how near the input it was, and whether the reply used it.

    `similarity` is its relevance as a part of the best candidate's, `cosine` the one between both vectors.
    """

    similarity: float
    cosine: float
    used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A context that is still kept: what it was given, what it cost, and the time it took to make."""

    bundle_id: UUID
    frame: str
    forced: bool
    profile: str
    budget: int
    tokens: int
    ms: float
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn that is over. `opening` are the first of their sessions, where no context could stand already; `by_model`,
    whether a model gave the reply, and `telling`, whether its words are still there too."""

    at: datetime
    session_id: UUID
    opening: bool
    how: How
    by_model: bool
    telling: bool
    context: Context | None


class Facts(NamedTuple):
    """All that are known at the end of the period, and those of them that were told again."""

    known: int
    confirmed: int


class Target(NamedTuple):
    """What a figure should be, both ends excluded; None is no end."""

    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure from `n` observations; None where there is none. From fewer than `fewest` it is judged by nobody."""

    name: str
    value: float | None
    n: int
    of: str
    unit: Literal["share", "score", "ms", "count"] = "share"
    target: Target | None = None
    fewest: int = FEWEST_TURNS

    @property
    def verdict(self) -> Verdict | None:
        """None where there is no target."""
        if self.target is None:
            return None
        if self.value is None or self.n < self.fewest:
            return "too few"
        if self.target.above is not None and self.value <= self.target.above:
            return "low"
        return "high" if self.target.below is not None and self.value >= self.target.below else "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of the turns that share a frame, a profile or a day."""

    name: str
    turns: int
    relevance: Figure
    utilisation: Figure
    precision: Figure
    refresh: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What is known of a period. `made` are the memories of each day by kind; `cost`, the model tokens of its turns."""

    since: datetime
    until: datetime
    turns: Sequence[Turn]
    made: Mapping[date, Mapping[str, int]]
    facts: Facts
    cost: int

    @property
    def days(self) -> float:
        return (self.until - self.since).total_seconds() / 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """All figures of a period, and the same by frame, by profile and by day."""

    period: Period
    figures: tuple[Figure, ...]
    frames: tuple[Group, ...]
    profiles: tuple[Group, ...]
    days: tuple[Group, ...]


def metrics(period: Period) -> Metrics:
    turns = period.turns
    return Metrics(
        period=period,
        figures=(
            relevance(turns),
            utilisation(turns),
            refresh(turns),
            precision(turns),
            cold_start(turns),
            _memories(period),
            _confirmed(period.facts),
            updates(turns),
            likeness(turns),
            wrong_frame(turns),
            share_of_tokens(turns, cost=period.cost),
        ),
        frames=_groups(turns, lambda turn: turn.context and turn.context.frame),
        profiles=_groups(turns, lambda turn: turn.context and turn.context.profile),
        days=_groups(turns, lambda turn: f"{turn.at:%Y-%m-%d}"),
    )


def relevance(turns: Sequence[Turn]) -> Figure:
    """Mean similarity of the items of all contexts that were made."""
    likes = [item.similarity for context in _made(turns) for item in context.items]
    return Figure(
        name="context relevance", value=_mean(likes), n=len(likes), of="items", unit="score", target=Target(above=0.6)
    )


def likeness(turns: Sequence[Turn]) -> Figure:
    """Their mean cosine, which no target knows: what it can be depends on the embedding model."""
    cosines = [item.cosine for context in _made(turns) for item in context.items]
    return Figure(name="mean cosine", value=_mean(cosines), n=len(cosines), of="items", unit="score")


def utilisation(turns: Sequence[Turn]) -> Figure:
    """Mean share of its budget that a context uses: of what its input was allotted, not of the ceiling that is set."""
    shares = [context.tokens / context.budget for context in _made(turns)]
    return Figure(
        name="budget utilisation",
        value=_mean(shares),
        n=len(shares),
        of="contexts",
        target=Target(above=0.5, below=0.9),
    )


def refresh(turns: Sequence[Turn]) -> Figure:
    """The share of turns whose context was made anew or had to give something up, of those for which one could have
    stood. One that was only added to still stands."""
    later = [turn for turn in turns if not turn.opening]
    share = _share(sum(turn.how in ("built", "evicted") for turn in later), len(later))
    return Figure(name="refresh rate", value=share, n=len(later), of="later turns", target=Target(below=0.3))


def updates(turns: Sequence[Turn]) -> Figure:
    """The share of such turns for which something was added to the context that stood."""
    later = [turn for turn in turns if not turn.opening]
    return Figure(
        name="contexts added to",
        value=_share(sum(t.how == "updated" for t in later), len(later)),
        n=len(later),
        of="later turns",
    )


def precision(turns: Sequence[Turn]) -> Figure:
    """The share of a context's items that replies used, over all contexts that a model was given. One that stood for
    several turns was loaded once: its item is used if one of their replies used it."""
    used: dict[UUID, tuple[bool, ...]] = {}
    for turn in turns:
        if turn.telling and turn.context:
            own = tuple(item.used for item in turn.context.items)
            before = used.get(turn.context.bundle_id, own)
            used[turn.context.bundle_id] = tuple(one or other for one, other in zip(before, own, strict=True))
    items, aim = [one for own in used.values() for one in own], Target(above=0.4)
    return Figure(name="recall precision", value=_share(sum(items), len(items)), n=len(items), of="items", target=aim)


def cold_start(turns: Sequence[Turn]) -> Figure:
    """The time to make a context from scratch, which 95 % keep; without the start of the process."""
    times = sorted(t.context.ms for t in turns if t.context and t.how == "built")
    slow = times[math.ceil(SLOWEST * len(times)) - 1] if times else None
    return Figure(name="cold start, p95", value=slow, n=len(times), of="contexts", unit="ms", target=Target(below=500))


def wrong_frame(turns: Sequence[Turn]) -> Figure:
    """How often a person put another frame in the place of the one chosen, at the next turn of the session."""
    last: dict[UUID, Context] = {}
    chosen = wrong = 0
    for turn in turns:
        if (context := turn.context) is None:
            continue
        before = last.get(turn.session_id)
        wrong += context.forced and before is not None and not before.forced and before.frame != context.frame
        chosen += not context.forced
        last[turn.session_id] = context
    return Figure(name="wrong frame first", value=_share(wrong, chosen), n=chosen, of="chosen frames")


def share_of_tokens(turns: Sequence[Turn], *, cost: int) -> Figure:
    """What contexts were of all tokens that the model read and wrote in these turns."""
    asked = [turn.context.tokens for turn in turns if turn.by_model and turn.context]
    share = min(sum(asked) / cost, 1.0) if cost and asked else None
    return Figure(name="context of turn tokens", value=share, n=len(asked), of="turns")


def _memories(period: Period) -> Figure:
    total = sum(sum(kinds.values()) for kinds in period.made.values())
    a_day = total / period.days if total and period.days else 0.0
    return Figure(name="memories a day", value=a_day, n=total, of="memories", unit="count")


def _confirmed(facts: Facts) -> Figure:
    return Figure(
        name="facts confirmed",
        value=_share(facts.confirmed, facts.known),
        n=facts.known,
        of="facts",
        target=Target(above=0.2),
        fewest=FEWEST_FACTS,
    )


def _made(turns: Sequence[Turn]) -> list[Context]:
    """Each context once, however many turns it served."""
    return list({turn.context.bundle_id: turn.context for turn in turns if turn.context}.values())


def _groups(turns: Sequence[Turn], key: Callable[[Turn], str | None]) -> tuple[Group, ...]:
    named: dict[str, list[Turn]] = {}
    for turn in turns:
        if (name := key(turn)) is not None:
            named.setdefault(name, []).append(turn)
    return tuple(
        Group(
            name=name,
            turns=len(own),
            relevance=relevance(own),
            utilisation=utilisation(own),
            precision=precision(own),
            refresh=refresh(own),
        )
        for name, own in sorted(named.items())
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
