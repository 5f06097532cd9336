"""Build a context from the working set of a session (the memories it used), without a search. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.assembly.candidate_sections import arrange, cluster
from newton.cognition.assembly.fact_labels import FactLabel, render_fact
from newton.cognition.assembly.fill import FITS_SHORT, NO_ROOM, FillPlacement
from newton.cognition.assembly.scored_candidate import ScoredCandidate
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
TRUST_NOUNS: Mapping[str, str] = {"web": "the web", "tool": "a tool"}


class EvictionItem(NamedTuple):
    """A memory in the working set, with the data that decide its eviction: importance (0 to 1), access, tokens."""

    memory_id: UUID
    importance: float
    accessed_at: datetime
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingContext:
    """A context built from the working set. `tokens` is an upper bound.

    Every memory is either in `items`, in the order of the text, or in `left_out`, best first.
    """

    profile: Profile
    text: str
    tokens: int
    limit: int
    items: tuple[ScoredCandidate, ...]
    left_out: tuple[ScoredCandidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetSnapshot:
    """The working set of a session at a moment.

    `created_at` of a memory is the time when it entered the set; `accessed_at` and `uses` are those within the session.
    `vectors` are needed only for the order `clustered`. `labels` are labels of facts.
    """

    memories: Sequence[RetrievedMemory]
    now: datetime
    frame: Frame | None = None
    vectors: "Mapping[UUID, Vector]" = field(default_factory=dict[UUID, "Vector"])
    labels: Mapping[UUID, FactLabel] = field(default_factory=dict[UUID, FactLabel])


def find_state_reason(found: RetrievedMemory) -> str | None:
    """Return why the state of a memory excludes it from every context, or None."""
    quarantine = (
        f"quarantined: it comes from {TRUST_NOUNS.get(found.trust, found.trust)}" if found.quarantined else None
    )
    return past_reason(found.kind, found.state) or quarantine


def rank_focus(
    memories: Sequence[RetrievedMemory], profile: Profile, *, now: datetime, max_tokens: int
) -> list[RetrievedMemory]:
    """Rank memories for the Current Focus section, best first: those that fit into `max_tokens`, then the rest."""
    context = assemble_working_context(WorkingSetSnapshot(memories=memories, now=now), profile, max_tokens=max_tokens)
    return [one.scored.found for one in (*context.items, *context.left_out)]


def assemble_working_context(snapshot: WorkingSetSnapshot, profile: Profile, *, max_tokens: int) -> WorkingContext:
    """Select the memories with the best score in the profile that fit into `max_tokens`, blank lines included.

    Of equal scores, the memory accessed last comes first.
    """
    score = create_scorer(profile=profile, now=snapshot.now, frame=snapshot.frame)
    ranked = sorted((score(found) for found in snapshot.memories), key=_sort_key, reverse=True)
    placed = list(_place_ranked(ranked, snapshot.labels, max_tokens=max_tokens, policy=profile.fill))
    items = _arrange_items([c for c in placed if c.detail], profile, snapshot)
    return WorkingContext(
        profile=profile,
        text=BLANK_LINE.join([to_bullet(_render_line(item)) for item in items]),
        tokens=sum([item.tokens for item in items]) + SEPARATOR_TOKENS * max(len(items) - 1, 0),
        limit=max_tokens,
        items=tuple(items),
        left_out=tuple([c for c in placed if not c.detail]),
    )


def _render_line(item: ScoredCandidate) -> str:
    """Render the line of an item. A procedure is rendered as name and steps."""
    is_steps = item.kind == "procedure" and item.detail == "summary"
    text = render_fact(item.label, item.text) if item.label else item.text
    return f"{item.scored.found.micro.partition(':')[0]}: {text}" if is_steps else text


def select_evictions(items: Sequence[EvictionItem], *, capacity: int, now: datetime) -> list[UUID]:
    """Return the ids of the memories to evict so that the rest fits into `capacity` tokens.

    The least important and longest unused memories are evicted first. The memory used last always remains.
    """
    excess = sum(item.tokens + SEPARATOR_TOKENS for item in items) - capacity
    last = max((item.accessed_at for item in items), default=now)
    coldest = sorted(
        items, key=lambda item: (item.accessed_at == last, _compute_warmth(item, now), item.accessed_at, item.memory_id)
    )
    evicted: list[UUID] = []
    for item in coldest[:-1]:
        if excess <= 0:
            break
        excess -= item.tokens + SEPARATOR_TOKENS
        evicted.append(item.memory_id)
    return evicted


def _compute_warmth(item: EvictionItem, now: datetime) -> float:
    return item.importance / (1 + max((now - item.accessed_at).total_seconds(), 0.0) / _SECONDS_PER_HOUR)


def _sort_key(scored: ScoredMemory) -> tuple[float, datetime, UUID]:
    return scored.score, scored.found.accessed_at or scored.found.created_at, scored.found.memory_id


def _place_ranked(
    ranked: Sequence[ScoredMemory], labels: Mapping[UUID, FactLabel], *, max_tokens: int, policy: OverflowMode
) -> Iterator[ScoredCandidate]:
    """Yield each memory with its placement, best first."""
    free_tokens, separator, is_full = max_tokens, 0, False
    for scored in ranked:
        found, label = scored.found, labels.get(scored.found.memory_id)
        sizes = label or found
        if reason := find_state_reason(found):
            placement = FillPlacement(found.memory_id, None, 0, reason)
        elif is_full:
            placement = FillPlacement(found.memory_id, None, 0, "comes after an item that did not fit")
        elif sizes.summary_tokens + separator <= free_tokens:
            placement = FillPlacement(found.memory_id, "summary", sizes.summary_tokens, "fits")
        elif policy == "downgrade" and sizes.micro_tokens + separator <= free_tokens:
            placement = FillPlacement(found.memory_id, "micro", sizes.micro_tokens, FITS_SHORT)
        else:
            is_full = policy == "stop"
            placement = FillPlacement(found.memory_id, None, 0, NO_ROOM)
        if placement.detail:
            free_tokens, separator = free_tokens - placement.tokens - separator, SEPARATOR_TOKENS
        yield ScoredCandidate(scored, placement, label)


def _arrange_items(
    items: Sequence[ScoredCandidate], profile: Profile, snapshot: WorkingSetSnapshot
) -> list[ScoredCandidate]:
    if profile.order != "clustered":
        return arrange(items, profile, sort_key=lambda c: (c.scored.found.occurred_at, c.memory_id))
    by_id = {item.memory_id: item for item in items}
    return [by_id[memory_id] for memory_id in cluster(list(by_id), snapshot.vectors, min_similarity=profile.alike)]
