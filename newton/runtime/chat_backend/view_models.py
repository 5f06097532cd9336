"""What a conversation tells a person of a turn, of its context, and of a memory in it, from whatever process."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from newton.agent.loop.turn import TurnResult
from newton.cognition.assembly.fill import DetailLevel
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.debug import format_debug_lines
from newton.cognition.bundles.explanation import BundleExplanation, CandidateExplanation
from newton.cognition.frames.selection import FrameChoice
from newton.heart.identity.identity_store import TenetProposal
from newton.heart.identity.tenets import IdentityPart, Tenet, format_tenet

MAX_NEAR_MISSES = 3  # of what was left out, so many are told


class ViewModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class FrameView(ViewModel):
    """How the input was looked at, how surely, and why."""

    name: str = Field(examples=["debug"])
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str


class LayerView(ViewModel):
    """Tokens that a layer was given, and those that it used."""

    budget: int
    used: int


class ItemView(ViewModel):
    """A memory in a list. `evidence` is how near it is to the input by itself; null for what was looked up."""

    layer: str
    score: float
    evidence: float | None
    text: str
    reason: str


class IdentityView(ViewModel):
    """The lines of the identity that stand in the context, and how many had no room."""

    version: int
    lines: list[str]
    unshown: int


class ContinuationView(ViewModel):
    """The context that it continues, how many memories entered, and how many gave way."""

    bundle_id: UUID
    entered: int
    gave_way: int


class ContextView(ViewModel):
    """What a context holds, as a list shows it: `nearly` are the best left out, `nearest` is the best evidence, and
    `blank` the times asked for of which nothing is known."""

    bundle_id: UUID
    frame: FrameView
    profile: str
    tokens: int
    budget: int
    nearest: float | None
    layers: dict[str, LayerView]
    items: list[ItemView]
    dropped: int
    nearly: list[ItemView]
    identity: IdentityView
    missing: dict[str, str]
    blank: list[str]
    continued: ContinuationView | None


class IdentityLineView(ViewModel):
    """A line of the identity."""

    tenet_id: UUID
    text: str


class ProposalView(IdentityLineView):
    """A line that waits for a person's yes, and those that stand and go against it: it would take their place."""

    part: IdentityPart
    instead_of: list[IdentityLineView]


class TurnView(ViewModel):
    """How a turn ended: the answer, what is to be known of it besides its words, and what it was given.

    `degraded` says why no model answered to the end, `failed` whether one was set and should have, and `caveat` says
    both in words; `proposed` waits for a yes. `how` and `because` say whether the context was made for this input.
    `context` and `debug` are there when they were asked for.
    """

    text: str
    degraded: str | None
    quoted: bool
    failed: bool
    caveat: str | None
    shortcoming: str
    proposed: list[ProposalView]
    how: str
    because: str
    contents: ContextView
    context: dict[str, Any] | None = Field(None, description="The whole context, as `POST /v1/context` answers it.")
    debug: list[str] = Field([], description="What was injected, as comment lines of an event stream.")


class NearMiss(ViewModel):
    """The best memory of the layer that would have been in, had there been room."""

    score: float
    text: str


class ExplanationView(ViewModel):
    """Why a memory is in a context, or is not: its features, what each gave to the score, and what they weigh."""

    memory_id: UUID
    text: str
    kind: str
    state: str
    trust: str
    quarantined: bool
    ref: str | None
    of_the_time: str | None
    sources: list[UUID]
    layer: str
    detail: DetailLevel | None
    reason: str
    tokens: int
    score: float
    features: dict[str, float]
    contributions: dict[str, float]
    weights: dict[str, float]
    missed: NearMiss | None


def to_turn_view(result: TurnResult, *, include_context: bool = False) -> TurnView:
    """The end of a turn; `whole` with all of its context."""
    own = {name: getattr(result, name) for name in ("text", "degraded", "quoted", "failed", "caveat", "shortcoming")}
    return TurnView(
        **own,
        proposed=[to_proposal_view(one) for one in result.proposed],
        how=result.context.method,
        because=result.context.reason,
        contents=to_context_view(result.bundle),
        context=result.bundle.as_json() if include_context else None,
        debug=format_debug_lines(result.bundle) if include_context else [],
    )


def to_context_view(bundle: Bundle) -> ContextView:
    known = [near for c in bundle.items if (near := item_evidence(bundle, c)) is not None]
    return ContextView(
        bundle_id=bundle.bundle_id,
        frame=to_frame_view(bundle.frame_choice),
        profile=bundle.profile.name,
        tokens=bundle.tokens,
        budget=bundle.budget,
        nearest=max(known, default=None),
        layers={name: LayerView(budget=layer.budget, used=layer.used) for name, layer in bundle.layers.items()},
        items=[_to_item_view(bundle, c) for c in bundle.items],
        dropped=len(bundle.rejected_candidates),
        nearly=[_to_item_view(bundle, c) for c in bundle.rejected_candidates[:MAX_NEAR_MISSES]],
        identity=IdentityView(
            version=bundle.identity.version,
            lines=[format_tenet(tenet.part, tenet.text) for tenet in bundle.identity.shown],
            unshown=len(bundle.identity.omitted),
        ),
        missing=dict(bundle.missing),
        blank=list(bundle.empty_time_ranges),
        continued=_to_continuation_view(bundle),
    )


def item_evidence(bundle: Bundle, candidate: ScoredCandidate) -> float | None:
    """How near it is to the input by itself; None for what was looked up and not searched for."""
    return None if candidate.memory_id in bundle.assembly_input.unranked else candidate.scored.found.evidence_score


def to_frame_view(choice: FrameChoice) -> FrameView:
    own = {name: getattr(choice, name) for name in FrameView.model_fields if name != "name"}
    return FrameView(name=choice.frame, **own)


def to_proposal_view(proposal: TenetProposal) -> ProposalView:
    tenet = proposal.tenet
    standing = [to_line_view(one) for one in proposal.instead_of]
    return ProposalView(tenet_id=tenet.tenet_id, text=tenet.text, part=tenet.part, instead_of=standing)


def to_line_view(tenet: Tenet) -> IdentityLineView:
    return IdentityLineView(tenet_id=tenet.tenet_id, text=tenet.text)


def to_explanation_view(explanation: BundleExplanation, item: CandidateExplanation) -> ExplanationView:
    """One memory of a stored context."""
    kept, found = item.stored_candidate, item.found
    missed = explanation.near_misses.get(item.layer)
    weights: Mapping[str, float] = explanation.stored.trace.assembly_input.profile.weights.nonzero
    return ExplanationView(
        **{name: getattr(kept, name) for name in ("memory_id", "state", "quarantined", "detail", "reason", "tokens")},
        **{name: getattr(found, name) for name in ("kind", "trust", "ref")},
        text=item.list_line,
        of_the_time=item.timely_reason,
        sources=list(item.sources),
        layer=item.layer,
        score=kept.score,
        features=dict(item.features),
        contributions=dict(item.contributions),
        weights=dict(weights),
        missed=missed and NearMiss(score=missed.stored_candidate.score, text=missed.list_line),
    )


def _to_item_view(bundle: Bundle, candidate: ScoredCandidate) -> ItemView:
    return ItemView(
        layer=candidate.layer,
        score=candidate.score,
        evidence=item_evidence(bundle, candidate),
        text=candidate.list_line,
        reason=candidate.reason,
    )


def _to_continuation_view(bundle: Bundle) -> ContinuationView | None:
    update = bundle.update
    if update is None:
        return None
    return ContinuationView(
        bundle_id=update.previous_bundle_id, entered=len(update.added), gave_way=len(update.evicted)
    )
