"""The JSON format of a context, as returned by `POST /v1/context`, `newton context --json` and turns.

Each type is a TypedDict, so the output of `Bundle.as_json` is not validated again.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class FrameSelection(TypedDict):
    """The frame of the input, the confidence of the selection, and its reason."""

    name: str
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: dict[str, dict[str, float]]


class LayerTokens(TypedDict):
    """The tokens of a layer. `used` never exceeds `ceiling`; it may exceed `share` if other layers need less."""

    share: int
    ceiling: int
    used: int


class DroppedCandidate(TypedDict):
    """A candidate that was left out, and the reason. `probability` is that of being relevant to the input."""

    memory_id: str
    refs: list[str]
    score: float
    evidence: float
    probability: float
    reason: str


class ContextItem(DroppedCandidate):
    """A memory in the context.

    `told_at` is when it occurred, for a fact when it was last stated; `valid_to` is the end of a fact. `contradicts`
    are the facts that are shown in the same item, because they cannot be true together.
    """

    kind: str
    layer: str
    detail: Literal["summary", "micro"] | None
    tokens: int
    text: str
    source: str
    told_at: str
    valid_to: str | None
    contradicts: list[str]
    features: dict[str, float]


class ContextResponse(TypedDict):
    """A context, with the reason why each candidate was selected or dropped.

    `nothing_relevant` is true when no memory is in it beside identity, censors, tasks and current focus.
    """

    bundle_id: str
    as_of: str | None
    input: str
    text: str
    tokens: int
    truncated: bool
    nothing_relevant: bool
    budget: int
    frame: FrameSelection
    profile: dict[str, Any]
    identity: dict[str, Any]
    layers: dict[str, LayerTokens]
    filters: NotRequired[dict[str, Any]]
    left_nothing: NotRequired[dict[str, Any]]
    times: dict[str, Any]
    missing: dict[str, str]
    update: dict[str, Any] | None
    timings_ms: dict[str, float]
    considered: dict[str, int]
    items: list[ContextItem]
    dropped: list[DroppedCandidate]
