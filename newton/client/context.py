"""JSON format of a context, as returned by `POST /v1/context`, `newton context --json` and turn results.

Each type is a TypedDict, so the output of `Bundle.as_json` is not validated again.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class FrameFeatureReport(TypedDict):
    """A feature of an input that speaks for the best frame (weight above 0) or for the second best one (below 0).

    `kind` is form (question words, error texts and the like), words, embedding, patterns or session. `phrase` are the
    words of the input that gave the feature. `weight` is in log odds.
    """

    kind: str
    name: str
    phrase: str
    weight: float


class FrameSelection(TypedDict):
    """The frame (kind of input, such as debug) selected for an input, with its confidence and reason.

    `runner_up` is the second best frame. `forced` is true if the caller named the frame, `unsure` if the confidence was
    too low for a choice. `languages` are the codes (ISO 639-1) of the languages in which the input was read, none
    if its language is not among those in which frames are chosen. `features` are those that decided, largest first.
    """

    name: str
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: dict[str, dict[str, float]]
    languages: list[str]
    features: list[FrameFeatureReport]


class QuestionReport(TypedDict):
    """The kind of question that the input asks, and how memories were gathered for it.

    `kind` is point (one fact), list, timeline, summary or standing (a request to which preferences and instructions
    apply). `phrase` are the words that decided, empty for a point. `rules` say how the kind changed the ranking.
    """

    kind: str
    phrase: str
    rules: list[str]


class LayerTokens(TypedDict):
    """Token counts of a layer (section) of a context.

    `share` is reserved for the layer, and `ceiling` is its maximum. `used` exceeds `share` only if other layers leave
    tokens unused.
    """

    share: int
    ceiling: int
    used: int


class DroppedCandidate(TypedDict):
    """A memory that was considered for a context and left out, and the reason. `refs` are external ids of it.

    `score` decides the order of selection. `evidence` says how well the memory matches the input: 0 for no match, about
    1 for a clear one. `probability` is the probability, from 0 to 1, that it is relevant to the input.
    """

    memory_id: str
    refs: list[str]
    score: float
    evidence: float
    probability: float
    reason: str


class ContextItem(DroppedCandidate):
    """A memory in a context.

    `trust` is the trust tier of its author; the text of a `tool` is data, never an instruction. `told_at` is the time
    at which the memory occurred or, for a fact, was last stated. `valid_to` is the time at which a fact stops being
    true. `contradicts` are facts in the same item that cannot be true together with this one. `inherited` is true if
    the memory is of the agent above the project in use.
    """

    kind: str
    layer: str
    detail: Literal["full", "summary", "part", "micro"] | None
    tokens: int
    text: str
    source: str
    trust: str
    told_at: str
    valid_to: str | None
    contradicts: list[str]
    inherited: bool
    features: dict[str, float]


class HookRun(TypedDict):
    """The run of a hook: a function of the pack (kind of work) that may change a context.

    `duration` is instant, fast, slow or late; `problem` is why the hook has no effect, or None.
    """

    name: str
    point: str
    duration: str
    effect: dict[str, Any]
    problem: str | None


class ContextResponse(TypedDict):
    """A context, with the reason why each memory considered was selected or dropped.

    `nothing_relevant` is true if the text has no memories, only identity, censors, tasks and session messages.
    `sufficiency` is the probability that the memories hold all that the question needs, null if unknown. `task`
    says which task of the session the search preferred or was limited to, and how many items belong to it. `profile`
    are the weights and limits that were used, with the `overrides` of the request, if there are any.
    `pending_approvals` are lines on what waits for the user's approval and was not told within two weeks.
    """

    bundle_id: str
    as_of: str | None
    input: str
    text: str
    tokens: int
    truncated: bool
    nothing_relevant: bool
    sufficiency: float | None
    budget: int
    frame: FrameSelection
    question: QuestionReport
    profile: dict[str, Any]
    identity: dict[str, Any]
    layers: dict[str, LayerTokens]
    overrides: NotRequired[dict[str, Any]]
    filters: NotRequired[dict[str, Any]]
    left_nothing: NotRequired[dict[str, Any]]
    times: dict[str, Any]
    task: dict[str, Any] | None
    missing: dict[str, str]
    pending_approvals: list[str]
    update: dict[str, Any] | None
    timings_ms: dict[str, float]
    hooks: list[HookRun]
    considered: dict[str, int]
    items: list[ContextItem]
    dropped: list[DroppedCandidate]
