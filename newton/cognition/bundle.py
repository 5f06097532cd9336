"""A bundle: one assembled context, with everything needed to explain it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from newton.cognition.fill import FULL, Detail, Placed
from newton.cognition.filters import Filters
from newton.cognition.framing import Choice
from newton.cognition.identity import Presence
from newton.cognition.render import BY_DAY
from newton.cognition.score import FEATURES, Scored
from newton.content.profiles import Profile
from newton.memory.memory import Trust
from newton.memory.recall import Found
from newton.memory.representations import parted

if TYPE_CHECKING:
    from newton.cognition.assemble import Setting

# What gave it, where that was no search.
SOURCE_OF: Mapping[str, str] = {
    "entity": "entity",
    "relation": "relation",
    "procedure": "pattern",
    "artifact": "session",
}


class Considered(NamedTuple):
    """One candidate with its features and score, and the verdict on it."""

    scored: Scored
    placed: Placed

    @property
    def memory_id(self) -> UUID:
        return self.placed.memory_id

    @property
    def kind(self) -> str:
        return self.scored.found.kind

    @property
    def layer(self) -> str:
        return self.scored.layer

    @property
    def detail(self) -> Detail | None:
        """How it is in the context; None when it is not."""
        return self.placed.detail

    @property
    def tokens(self) -> int:
        return self.placed.tokens

    @property
    def score(self) -> float:
        return self.scored.score

    @property
    def features(self) -> Mapping[str, float]:
        return dict(zip(FEATURES, self.scored.features, strict=True))

    @property
    def refs(self) -> tuple[str, ...]:
        """The caller's own ids of what it rests on."""
        return (self.scored.found.ref,) if self.scored.found.ref else ()

    @property
    def reason(self) -> str:
        return self.placed.reason

    @property
    def text(self) -> str:
        """What the context tells of it, or would have told, with its day."""
        return self.scored.found.micro if self.detail == "micro" else self.scored.found.summary

    @property
    def brief(self) -> str:
        """Its line in a list."""
        return briefly(self.scored.found, self.text)

    @property
    def day(self) -> str | None:
        """The day under which it stands in its layer."""
        return self.scored.found.day if self.layer in BY_DAY else None

    @property
    def shown(self) -> str:
        """Its line in the context: without the day, when it stands under it."""
        return parted(self.text)[1] if self.day else self.text


def briefly(found: Found, text: str) -> str:
    """A memory in a list: as it is told, but of a procedure its name and what it is for in the place of its steps."""
    return found.micro if found.kind == "procedure" else text


@dataclass(frozen=True, slots=True)
class Layer:
    """Tokens a layer was given and what it used, its header included. Unused tokens flow, so used may be more."""

    budget: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """How a context came from the one that it `continues`: what entered, and what became of all that had to give way.

    `truncated` says that something had to.
    """

    continues: UUID
    because: str
    entered: tuple[UUID, ...]
    gave_way: Mapping[UUID, str]

    @property
    def truncated(self) -> bool:
        return bool(self.gave_way)

    def as_json(self) -> dict[str, Any]:
        return {
            "continues": str(self.continues),
            "because": self.because,
            "entered": [str(memory_id) for memory_id in self.entered],
            "gave_way": {str(memory_id): how for memory_id, how in self.gave_way.items()},
            "truncated": self.truncated,
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
    identity: Presence
    text: str
    tokens: int
    budget: int
    frame: Choice
    frame_edition: str
    profile: Profile
    setting: "Setting"
    layers: Mapping[str, Layer]
    candidates: tuple[Considered, ...]
    focus: tuple[Found, ...]
    recent: frozenset[UUID]
    filters: Filters
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]
    update: Update | None = None

    @property
    def items(self) -> tuple[Considered, ...]:
        return tuple(c for c in self.candidates if c.detail)

    @property
    def dropped(self) -> tuple[Considered, ...]:
        return tuple(c for c in self.candidates if not c.detail)

    @property
    def outside(self) -> frozenset[Trust]:
        """How far to believe what it tells that is quarantined elsewhere: the words of tools and of the web."""
        told = (*(c.scored.found for c in self.items), *self.focus)
        return frozenset(found.trust for found in told if found.quarantined)

    @property
    def left_nothing(self) -> Mapping[str, list[str]]:
        """The filters that left nothing to choose from, with what they name."""
        return self.filters.left_nothing({c.kind for c in self.candidates} | {found.kind for found in self.focus})

    @property
    def blank(self) -> tuple[str, ...]:
        """The times that the input asks for, as it says them, when nothing is known of any of them."""
        return tuple(span.words for span in self.setting.times) if self.setting.blank else ()

    @property
    def truncated(self) -> bool:
        """Whether something was left out that only wanted room."""
        return any(c.reason == FULL for c in self.candidates)

    def source(self, c: Considered) -> str:
        """Where it came from: recent, entity, relation, pattern, or semantic for what was searched."""
        return "recent" if c.memory_id in self.recent else SOURCE_OF.get(c.kind, "semantic")

    def as_json(self) -> dict[str, Any]:
        """The public form: what every door answers."""
        return {
            "bundle_id": str(self.bundle_id),
            "as_of": self.as_of and self.as_of.isoformat(),
            "input": self.input,
            "text": self.text,
            "tokens": self.tokens,
            "truncated": self.truncated,
            **self._outline(),
            "considered": dict(sorted(Counter(c.kind for c in self.candidates).items())),
            "items": [
                {**_verdict(c), **_detail(c), "source": self.source(c), "features": _rounded(c)} for c in self.items
            ],
            "dropped": [_verdict(c) for c in self.dropped],
        }

    def _outline(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "frame": self.frame.outline(),
            "profile": {"name": self.profile.name, "weights": self.profile.weights.given},
            "identity": self.identity.as_json(),
            "layers": {name: {"budget": layer.budget, "used": layer.used} for name, layer in self.layers.items()},
            **({"filters": given, "left_nothing": self.left_nothing} if (given := self.filters.outline()) else {}),
            "times": {"asked": [span.words for span in self.setting.times], "blank": bool(self.blank)},
            "missing": dict(self.missing),
            "update": self.update and self.update.as_json(),
            "timings_ms": {name: round(ms, 3) for name, ms in self.timings_ms.items()},
        }


def _verdict(c: Considered) -> dict[str, Any]:
    return {
        "memory_id": str(c.memory_id),
        "refs": c.refs,
        "score": round(c.score, 6),
        "evidence": round(c.scored.found.evidence, 4),
        "reason": c.reason,
    }


def _detail(c: Considered) -> dict[str, Any]:
    return {"kind": c.kind, "layer": c.layer, "detail": c.detail, "tokens": c.tokens, "text": c.text}


def _rounded(c: Considered) -> dict[str, float]:
    return {name: round(value, 4) for name, value in c.features.items()}
