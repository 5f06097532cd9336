"""From a session's working set to a context: what is at hand, ranked by a profile, within a limit. Pure.

Nothing is searched, embedded or asked: this is the context for whoever has no question yet, or no time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.fill import Detail
from newton.cognition.order import arranged, clustered
from newton.cognition.score import Scored, scorer
from newton.content.frames import Frame
from newton.content.profiles import Fill, Profile
from newton.memory.memory import past
from newton.memory.recall import Found
from newton.memory.representations import bullet

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

BLANK_LINE = "\n"  # between two items, each of which ends its own line
JOINER = 1  # tokens that a blank line costs at most
_SECONDS_AN_HOUR = 3_600


class Held(NamedTuple):
    """What eviction needs to know of a memory in the working set: importance in [0, 1], tokens as it is shown."""

    memory_id: UUID
    importance: float
    accessed_at: datetime
    tokens: int


class Chosen(NamedTuple):
    """The verdict on one memory. `detail` is None when it stays out; `reason` says why it is in or out."""

    scored: Scored
    detail: Detail | None
    tokens: int
    reason: str

    @property
    def memory_id(self) -> UUID:
        return self.scored.found.memory_id

    @property
    def text(self) -> str:
        """Its line, or the one it would have had."""
        return self.scored.found.micro if self.detail == "micro" else self.scored.found.summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A context from the working set. `tokens` is what the text costs at most; every memory is in `items`, as they
    stand in the text, or in `left_out`, the best first."""

    profile: Profile
    text: str
    tokens: int
    limit: int
    items: tuple[Chosen, ...]
    left_out: tuple[Chosen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What there is to choose from, at a moment. Of a memory here, `created_at` is when it came into the set,
    `accessed_at` and `uses` tell of its use in the session. Vectors are wanted by the order `clustered` alone."""

    held: Sequence[Found]
    now: datetime
    frame: Frame | None = None
    vectors: "Mapping[UUID, Vector]" = field(default_factory=dict[UUID, "Vector"])


def assembled(desk: Desk, profile: Profile, *, limit: int) -> Assembled:
    """The best of the working set by the profile, within so many tokens, blank lines between them included.

    Equal scores stand in the order of their last use, the latest first.
    """
    score = scorer(profile=profile, now=desk.now, frame=desk.frame)
    ranked = sorted((score(found) for found in desk.held), key=_by_score, reverse=True)
    verdicts = list(_filled(ranked, limit=limit, policy=profile.fill))
    items = _ordered([chosen for chosen in verdicts if chosen.detail], profile, desk)
    return Assembled(
        profile=profile,
        text=BLANK_LINE.join([bullet(_titled(chosen)) for chosen in items]),
        tokens=sum([chosen.tokens for chosen in items]) + JOINER * max(len(items) - 1, 0),
        limit=limit,
        items=tuple(items),
        left_out=tuple([chosen for chosen in verdicts if not chosen.detail]),
    )


def _titled(chosen: Chosen) -> str:
    """The steps of a procedure follow its name, which costs less than the header that its tokens count."""
    found = chosen.scored.found
    steps = found.kind == "procedure" and chosen.detail == "summary"
    return f"{found.micro.partition(':')[0]}: {chosen.text}" if steps else chosen.text


def evicted(held: Sequence[Held], *, capacity: int, now: datetime) -> list[UUID]:
    """Which memories leave the working set so that the rest fits: what matters little and was not used for long first,
    what was used last at the very end. One always stays."""
    over = sum(one.tokens + JOINER for one in held) - capacity
    last = max((one.accessed_at for one in held), default=now)
    coldest = sorted(held, key=lambda one: (one.accessed_at == last, _warmth(one, now), one.accessed_at, one.memory_id))
    gone: list[UUID] = []
    for one in coldest[:-1]:
        if over <= 0:
            break
        over -= one.tokens + JOINER
        gone.append(one.memory_id)
    return gone


def _warmth(held: Held, now: datetime) -> float:
    return held.importance / (1 + max((now - held.accessed_at).total_seconds(), 0.0) / _SECONDS_AN_HOUR)


def _by_score(scored: Scored) -> tuple[float, datetime, UUID]:
    return scored.score, scored.found.accessed_at or scored.found.created_at, scored.found.memory_id


def _filled(ranked: Sequence[Scored], *, limit: int, policy: Fill) -> Iterator[Chosen]:
    """One verdict for each, the best first."""
    left, joiner, stopped = limit, 0, False
    for scored in ranked:
        found = scored.found
        if why := _excluded(found):
            yield Chosen(scored, None, 0, why)
        elif stopped:
            yield Chosen(scored, None, 0, "comes after one that did not fit")
        elif found.summary_tokens + joiner <= left:
            yield Chosen(scored, "summary", found.summary_tokens, "fits")
            left, joiner = left - found.summary_tokens - joiner, JOINER
        elif policy == "downgrade" and found.micro_tokens + joiner <= left:
            yield Chosen(scored, "micro", found.micro_tokens, "only its short form fits")
            left, joiner = left - found.micro_tokens - joiner, JOINER
        else:
            stopped = policy == "stop"
            yield Chosen(scored, None, 0, "no room left")


def _excluded(found: Found) -> str | None:
    if found.quarantined:
        return f"quarantined: it comes from a {found.trust}"
    return past(found.kind, found.state)


def _ordered(chosen: Sequence[Chosen], profile: Profile, desk: Desk) -> list[Chosen]:
    if profile.order != "clustered":
        return arranged(chosen, profile, when=lambda c: (c.scored.found.occurred_at, c.memory_id))
    by_id = {one.memory_id: one for one in chosen}
    return [by_id[one] for one in clustered(list(by_id), desk.vectors, alike=profile.alike)]
