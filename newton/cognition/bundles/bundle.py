"""A bundle: one assembled context, with everything needed to explain it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from newton.cognition.assembly.assembler import AssemblyInput
from newton.cognition.assembly.fill import NO_ROOM
from newton.cognition.assembly.scored_candidate import LayerUsage, ScoredCandidate
from newton.cognition.assembly.sections import IdentitySection
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.request import ContextFilters
from newton.content.profiles import Profile
from newton.memory.memory import Trust
from newton.memory.search_types import RetrievedMemory

RefreshMethod = Literal["built", "updated", "evicted", "stood"]

if TYPE_CHECKING:
    from newton.client.context import ContextItem, ContextResponse, DroppedCandidate

# What gave it, where that was no search.
SOURCE_BY_KIND: Mapping[str, str] = {
    "entity": "entity",
    "relation": "relation",
    "procedure": "pattern",
    "artifact": "session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdate:
    """How a context came from the one that it `continues`: what entered, and what became of all that had to give way.

    `truncated` says that something had to.
    """

    previous_bundle_id: UUID
    reason: str
    added: tuple[UUID, ...]
    evicted: Mapping[UUID, str]

    @property
    def has_evictions(self) -> bool:
        return bool(self.evicted)

    def as_json(self) -> dict[str, Any]:
        return {
            "continues": str(self.previous_bundle_id),
            "because": self.reason,
            "entered": [str(memory_id) for memory_id in self.added],
            "gave_way": {str(memory_id): how for memory_id, how in self.evicted.items()},
            "truncated": self.has_evictions,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One context. `setting` is what its candidates were placed into, `identity` what stood first, `focus` what else
    stood in it unasked, and `recent` are candidates because they are of late; `update` says how it came from another,
    None of one made from scratch.

    `as_of` is the moment it was rebuilt for, None for the present; `frame_edition` tells its frame from one of the same
    name. `missing` names the sources that could not be asked, and why.
    """

    bundle_id: UUID
    agent_id: UUID
    session_id: UUID | None
    created_at: datetime
    as_of: datetime | None
    input: str
    identity: IdentitySection
    text: str
    tokens: int
    budget: int
    frame_choice: FrameChoice
    frame_edition: str
    profile: Profile
    assembly_input: AssemblyInput
    layers: Mapping[str, LayerUsage]
    candidates: tuple[ScoredCandidate, ...]
    focus: tuple[RetrievedMemory, ...]
    recent_ids: frozenset[UUID]
    filters: ContextFilters
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]
    update: ContextUpdate | None = None

    @property
    def items(self) -> tuple[ScoredCandidate, ...]:
        return tuple(c for c in self.candidates if c.detail)

    @property
    def rejected_candidates(self) -> tuple[ScoredCandidate, ...]:
        return tuple(c for c in self.candidates if not c.detail)

    @property
    def external_trusts(self) -> frozenset[Trust]:
        """How far to believe what it tells that is quarantined elsewhere: the words of tools and of the web."""
        told = (*(c.scored.found for c in self.items), *self.focus)
        return frozenset(found.trust for found in told if found.quarantined)

    @property
    def unmatched_filters(self) -> Mapping[str, list[str]]:
        """The filters that left nothing to choose from, with what they name."""
        return self.filters.find_unmatched({c.kind for c in self.candidates} | {found.kind for found in self.focus})

    @property
    def empty_time_ranges(self) -> tuple[str, ...]:
        """The times that the input asks for, as it says them, when nothing is known of any of them."""
        return (
            tuple(span.phrase for span in self.assembly_input.time_ranges)
            if self.assembly_input.empty_range_note
            else ()
        )

    @property
    def is_truncated(self) -> bool:
        """Whether something was left out that only wanted room."""
        return any(c.reason == NO_ROOM for c in self.candidates)

    def find_source(self, c: ScoredCandidate) -> str:
        """Where it came from: recent, entity, relation, pattern, or semantic for what was searched."""
        return "recent" if c.memory_id in self.recent_ids else SOURCE_BY_KIND.get(c.kind, "semantic")

    def as_json(self) -> "ContextResponse":
        """Return the context as all interfaces publish it."""
        plain: ContextResponse = {
            "bundle_id": str(self.bundle_id),
            "as_of": self.as_of and self.as_of.isoformat(),
            "input": self.input,
            "text": self.text,
            "tokens": self.tokens,
            "truncated": self.is_truncated,
            "budget": self.budget,
            "frame": self.frame_choice.as_json(),
            "profile": {"name": self.profile.name, "weights": self.profile.weights.nonzero},
            "identity": self.identity.as_json(),
            "layers": {name: {"budget": layer.budget, "used": layer.used} for name, layer in self.layers.items()},
            "times": {
                "asked": [span.phrase for span in self.assembly_input.time_ranges],
                "blank": bool(self.empty_time_ranges),
            },
            "missing": dict(self.missing),
            "update": self.update and self.update.as_json(),
            "timings_ms": {name: round(ms, 3) for name, ms in self.timings_ms.items()},
            "considered": dict(sorted(Counter(c.kind for c in self.candidates).items())),
            "items": [_item_json(c, source=self.find_source(c)) for c in self.items],
            "dropped": [_verdict_json(c) for c in self.rejected_candidates],
        }
        if given := self.filters.as_json():
            plain["filters"] = given
            plain["left_nothing"] = dict(self.unmatched_filters)
        return plain


def _verdict_json(c: ScoredCandidate) -> "DroppedCandidate":
    return {
        "memory_id": str(c.memory_id),
        "refs": list(c.refs),
        "score": round(c.score, 6),
        "evidence": round(c.scored.found.evidence_score, 4),
        "reason": c.reason,
    }


def _item_json(c: ScoredCandidate, *, source: str) -> "ContextItem":
    return {
        **_verdict_json(c),
        "kind": c.kind,
        "layer": c.layer,
        "detail": c.detail,
        "tokens": c.tokens,
        "text": c.text,
        "source": source,
        "features": _features_json(c),
    }


def _features_json(c: ScoredCandidate) -> dict[str, float]:
    return {name: round(value, 4) for name, value in c.features.items()}
