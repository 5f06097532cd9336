"""A bundle: one assembled context, with everything needed to explain it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from newton.cognition.fill import Detail
from newton.cognition.framing import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """One candidate: its features, what each gave to the score, and the verdict. Out when `detail` is None."""

    memory_id: UUID
    kind: str
    layer: str
    detail: Detail | None
    tokens: int
    score: float
    features: Mapping[str, float]
    contributions: Mapping[str, float]
    refs: tuple[str, ...]
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Layer:
    """Tokens a layer was given and what it used, its header included. Unused tokens flow, so used may be more."""

    budget: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One context. `missing` names the sources that could not be asked, and why."""

    bundle_id: UUID
    agent_id: UUID
    session_id: UUID | None
    created_at: datetime
    input: str
    text: str
    tokens: int
    budget: int
    frame: Choice
    profile: str
    layers: Mapping[str, Layer]
    candidates: tuple[Considered, ...]
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]

    @property
    def items(self) -> tuple[Considered, ...]:
        return tuple(c for c in self.candidates if c.detail)

    @property
    def dropped(self) -> tuple[Considered, ...]:
        return tuple(c for c in self.candidates if not c.detail)

    def as_json(self) -> dict[str, Any]:
        """The public form: what every door answers."""
        return {"bundle_id": str(self.bundle_id), "text": self.text, "tokens": self.tokens, **self.trace()}

    def trace(self) -> dict[str, Any]:
        """Why the text is as it is, in plain JSON values."""
        return {
            "budget": self.budget,
            "frame": {
                "name": self.frame.frame,
                "confidence": round(self.frame.confidence, 4),
                "runner_up": self.frame.runner_up,
                "forced": self.frame.forced,
                "evidence": {
                    name: {part: round(getattr(e, part), 4) for part in ("pattern", "example", "prior")}
                    for name, e in self.frame.evidence.items()
                },
            },
            "profile": self.profile,
            "layers": {name: {"budget": layer.budget, "used": layer.used} for name, layer in self.layers.items()},
            "items": [_item(c) for c in self.items],
            "dropped": [_dropped(c) for c in self.dropped],
            "missing": dict(self.missing),
            "timings_ms": {name: round(ms, 3) for name, ms in self.timings_ms.items()},
        }


def _item(c: Considered) -> dict[str, Any]:
    return {
        "memory_id": str(c.memory_id),
        "kind": c.kind,
        "layer": c.layer,
        "detail": c.detail,
        "tokens": c.tokens,
        "score": round(c.score, 6),
        "features": {name: round(value, 6) for name, value in c.features.items()},
        "contributions": {name: round(value, 6) for name, value in c.contributions.items()},
        "refs": c.refs,
        "reason": c.reason,
        "text": c.text,
    }


def _dropped(c: Considered) -> dict[str, Any]:
    return {
        "memory_id": str(c.memory_id),
        "kind": c.kind,
        "refs": c.refs,
        "score": round(c.score, 6),
        "features": {name: round(value, 6) for name, value in c.features.items()},
        "reason": c.reason,
    }
