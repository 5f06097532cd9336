"""Candidates of a context with their score and placement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import DetailLevel, Placement
from newton.cognition.assembly.render import LAYERS_BY_DAY
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.memory.representations import split_date_prefix
from newton.memory.search_types import RetrievedMemory


class ScoredCandidate(NamedTuple):
    """A candidate with its features, its score and the verdict on it."""

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
        """Return the detail level in the context; None when left out."""
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
        """Return the caller's own id of its source, if any."""
        return (self.scored.found.ref,) if self.scored.found.ref else ()

    @property
    def reason(self) -> str:
        return self.placement.reason

    @property
    def text(self) -> str:
        """Return the text for the context, with its date prefix; of a rejected candidate the summary."""
        return self.scored.found.micro if self.detail == "micro" else self.scored.found.summary

    @property
    def list_line(self) -> str:
        return format_list_line(self.scored.found, self.text)

    @property
    def day(self) -> str | None:
        """Return the day heading above the candidate; None in layers without day headings."""
        return self.scored.found.day if self.layer in LAYERS_BY_DAY else None

    @property
    def context_line(self) -> str:
        """Return the line in the context, without the date prefix below a day heading."""
        return split_date_prefix(self.text)[1] if self.day else self.text


def format_list_line(found: RetrievedMemory, text: str) -> str:
    """Return the list line of a memory: its text, or for a procedure its name and purpose."""
    return found.micro if found.kind == "procedure" else text


@dataclass(frozen=True, slots=True)
class LayerUsage:
    """Token budget and usage of a layer, header included. `used` exceeds `budget` if the layer uses others' tokens."""

    budget: int
    used: int
