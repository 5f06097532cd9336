"""Candidates of a context with their score and placement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import DetailLevel, Placement
from newton.cognition.assembly.render import LAYERS_BY_DAY
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.memory.recall import RetrievedMemory
from newton.memory.representations import split_date_prefix


class ScoredCandidate(NamedTuple):
    """One candidate with its features and score, and the verdict on it."""

    scored: ScoredMemory
    placement: Placement

    @property
    def memory_id(self) -> UUID:
        return self.placement.memory_id

    @property
    def kind(self) -> str:
        return self.scored.found.kind

    @property
    def layer(self) -> str:
        return self.scored.layer

    @property
    def detail(self) -> DetailLevel | None:
        """How it is in the context; None when it is not."""
        return self.placement.detail

    @property
    def tokens(self) -> int:
        return self.placement.tokens

    @property
    def score(self) -> float:
        return self.scored.score

    @property
    def features(self) -> Mapping[str, float]:
        return dict(zip(FEATURE_NAMES, self.scored.features, strict=True))

    @property
    def refs(self) -> tuple[str, ...]:
        """The caller's own ids of what it rests on."""
        return (self.scored.found.ref,) if self.scored.found.ref else ()

    @property
    def reason(self) -> str:
        return self.placement.reason

    @property
    def text(self) -> str:
        """What the context tells of it, or would have told, with its day."""
        return self.scored.found.micro if self.detail == "micro" else self.scored.found.summary

    @property
    def list_line(self) -> str:
        """Its line in a list."""
        return format_list_line(self.scored.found, self.text)

    @property
    def day(self) -> str | None:
        """The day under which it stands in its layer."""
        return self.scored.found.day if self.layer in LAYERS_BY_DAY else None

    @property
    def context_line(self) -> str:
        """Its line in the context: without the day, when it stands under it."""
        return split_date_prefix(self.text)[1] if self.day else self.text


def format_list_line(found: RetrievedMemory, text: str) -> str:
    """A memory in a list: as it is told, but of a procedure its name and what it is for in the place of its steps."""
    return found.micro if found.kind == "procedure" else text


@dataclass(frozen=True, slots=True)
class LayerUsage:
    """Tokens a layer was given and what it used, its header included. Unused tokens flow, so used may be more."""

    budget: int
    used: int
