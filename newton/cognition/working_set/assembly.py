"""Context from the working set of a session, ranked by a profile. Pure.

Needs no query, search or embedding.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import DetailLevel
from newton.cognition.assembly.order import arrange, cluster
from newton.cognition.scoring.score import ScoredMemory, create_scorer
from newton.content.frames import Frame
from newton.content.profiles import OverflowMode, Profile
from newton.memory.memory import past_reason
from newton.memory.representations import to_bullet
from newton.memory.search_types import RetrievedMemory

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

BLANK_LINE = "\n"  # separates two items, each of which ends with a newline
SEPARATOR_TOKENS = 1  # upper bound for a blank line
_SECONDS_PER_HOUR = 3_600


class EvictionItem(NamedTuple):
    """A memory in the working set: importance in [0, 1], last access and tokens."""

    memory_id: UUID
    importance: float
    accessed_at: datetime
    tokens: int


class WorkingSetVerdict(NamedTuple):
    """The verdict on one memory. `detail` is None when it is left out."""

    scored: ScoredMemory
    detail: DetailLevel | None
    tokens: int
    reason: str

    @property
    def memory_id(self) -> UUID:
        return self.scored.found.memory_id

    @property
    def text(self) -> str:
        """Return its line in the context, or the line it would have had."""
        return self.scored.found.micro if self.detail == "micro" else self.scored.found.summary


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingContext:
    """A context from the working set. `tokens` is an upper bound for the text.

    Every memory is in `items`, in the order of the text, or in `left_out`, best first.
    """

    profile: Profile
    text: str
    tokens: int
    limit: int
    items: tuple[WorkingSetVerdict, ...]
    left_out: tuple[WorkingSetVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetSnapshot:
    """The working set at a moment.

    Here `created_at` of a memory is when it entered the set; `accessed_at` and `uses` count within the session. Only
    the order `clustered` needs vectors.
    """

    memories: Sequence[RetrievedMemory]
    now: datetime
    frame: Frame | None = None
    vectors: "Mapping[UUID, Vector]" = field(default_factory=dict[UUID, "Vector"])


def assemble_working_context(snapshot: WorkingSetSnapshot, profile: Profile, *, max_tokens: int) -> WorkingContext:
    """Return the best memories by the profile within `max_tokens`, blank lines included.

    Ties are broken by last access, latest first.
    """
    score = create_scorer(profile=profile, now=snapshot.now, frame=snapshot.frame)
    ranked = sorted((score(found) for found in snapshot.memories), key=_sort_key, reverse=True)
    verdicts = list(_fill_verdicts(ranked, max_tokens=max_tokens, policy=profile.fill))
    items = _arrange_verdicts([chosen for chosen in verdicts if chosen.detail], profile, snapshot)
    return WorkingContext(
        profile=profile,
        text=BLANK_LINE.join([to_bullet(_render_line(chosen)) for chosen in items]),
        tokens=sum([chosen.tokens for chosen in items]) + SEPARATOR_TOKENS * max(len(items) - 1, 0),
        limit=max_tokens,
        items=tuple(items),
        left_out=tuple([chosen for chosen in verdicts if not chosen.detail]),
    )


def _render_line(working_verdict: WorkingSetVerdict) -> str:
    """Render a procedure as name and steps, which costs less than the header counted in its tokens."""
    found = working_verdict.scored.found
    steps = found.kind == "procedure" and working_verdict.detail == "summary"
    return f"{found.micro.partition(':')[0]}: {working_verdict.text}" if steps else working_verdict.text


def select_evictions(eviction_items: Sequence[EvictionItem], *, capacity: int, now: datetime) -> list[UUID]:
    """Return the memories to evict so that the rest fits into `capacity`: the least important and longest unused first,
    the last used last. One memory always remains."""
    over = sum(one.tokens + SEPARATOR_TOKENS for one in eviction_items) - capacity
    last = max((one.accessed_at for one in eviction_items), default=now)
    coldest = sorted(
        eviction_items,
        key=lambda one: (one.accessed_at == last, _compute_warmth(one, now), one.accessed_at, one.memory_id),
    )
    gone: list[UUID] = []
    for one in coldest[:-1]:
        if over <= 0:
            break
        over -= one.tokens + SEPARATOR_TOKENS
        gone.append(one.memory_id)
    return gone


def _compute_warmth(eviction_item: EvictionItem, now: datetime) -> float:
    return eviction_item.importance / (
        1 + max((now - eviction_item.accessed_at).total_seconds(), 0.0) / _SECONDS_PER_HOUR
    )


def _sort_key(scored: ScoredMemory) -> tuple[float, datetime, UUID]:
    return scored.score, scored.found.accessed_at or scored.found.created_at, scored.found.memory_id


def _fill_verdicts(
    ranked: Sequence[ScoredMemory], *, max_tokens: int, policy: OverflowMode
) -> Iterator[WorkingSetVerdict]:
    """Yield one verdict per memory, best first."""
    left, joiner, stopped = max_tokens, 0, False
    for scored in ranked:
        found = scored.found
        if why := _find_exclusion_reason(found):
            yield WorkingSetVerdict(scored, None, 0, why)
        elif stopped:
            yield WorkingSetVerdict(scored, None, 0, "comes after one that did not fit")
        elif found.summary_tokens + joiner <= left:
            yield WorkingSetVerdict(scored, "summary", found.summary_tokens, "fits")
            left, joiner = left - found.summary_tokens - joiner, SEPARATOR_TOKENS
        elif policy == "downgrade" and found.micro_tokens + joiner <= left:
            yield WorkingSetVerdict(scored, "micro", found.micro_tokens, "only its short form fits")
            left, joiner = left - found.micro_tokens - joiner, SEPARATOR_TOKENS
        else:
            stopped = policy == "stop"
            yield WorkingSetVerdict(scored, None, 0, "no room left")


def _find_exclusion_reason(found: RetrievedMemory) -> str | None:
    if found.quarantined:
        return f"quarantined: it comes from a {found.trust}"
    return past_reason(found.kind, found.state)


def _arrange_verdicts(
    selected: Sequence[WorkingSetVerdict], profile: Profile, snapshot: WorkingSetSnapshot
) -> list[WorkingSetVerdict]:
    if profile.order != "clustered":
        return arrange(selected, profile, sort_key=lambda c: (c.scored.found.occurred_at, c.memory_id))
    by_id = {one.memory_id: one for one in selected}
    return [by_id[one] for one in cluster(list(by_id), snapshot.vectors, min_similarity=profile.alike)]
