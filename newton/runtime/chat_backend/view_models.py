"""View models of a turn, its context and its memories, for the terminal and for HTTP responses."""

from uuid import UUID

from pydantic import Field

from newton.agent.loop.turn_types import TurnResult
from newton.client.context import ContextResponse, FrameSelection, LayerTokens, QuestionReport
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.heart.identity.identity_store import TenetProposal
from newton.heart.identity.tenets import IdentityPart, format_tenet
from newton.heart.identity.user_rules import RuleChange
from newton.operations.agent.identity_records import IdentityLine, to_line
from newton.runtime.tools.views import ViewModel

MAX_NEAR_MISSES = 3


class ItemView(ViewModel):
    """A memory considered for a context: its layer (section), score, and why it was selected or left out.

    `evidence` says how well it matches the input; null if it was not found by search.
    """

    layer: str
    score: float
    evidence: float | None
    text: str
    reason: str


class IdentityView(ViewModel):
    """The lines of the identity (who the agent is, what always applies) in a context, and how many did not fit."""

    version: int
    lines: list[str]
    omitted: int


class ContinuationView(ViewModel):
    """The previous context of the session, and the counts of memories added to it and removed from it."""

    bundle_id: UUID
    added: int
    evicted: int


class ContextView(ViewModel):
    """A summary of a context (the text from memory for an input): what was selected, how and why.

    `near_misses` are the best memories that were left out. `empty_time_ranges` are times named in the input for which
    there is no memory.
    """

    bundle_id: UUID
    frame: FrameSelection
    question: QuestionReport
    profile: str
    tokens: int
    budget: int
    best_evidence: float | None
    layers: dict[str, LayerTokens]
    items: list[ItemView]
    dropped: int
    near_misses: list[ItemView]
    identity: IdentityView
    missing: dict[str, str]
    empty_time_ranges: list[str]
    has_nothing_relevant: bool
    sufficiency: float | None
    continued_from: ContinuationView | None


class ProposalView(ViewModel):
    """A line proposed for the identity (what always applies), and the current lines that it would replace."""

    line_id: UUID
    section: IdentityPart
    text: str
    conflicts_with: list[IdentityLine]


class RuleChangeView(ViewModel):
    """A change of the user's rules by an input: the rule that it added, or None, and the rules that it removed.

    `version` is the version of the identity, which has the rules, before the change.
    """

    added: IdentityLine | None
    removed: list[IdentityLine]
    version: int

    def can_roll_back(self, latest: int) -> bool:
        """Return whether restoring the earlier version would undo only this change: `latest` is the version after it.

        Restoring is better than adding a removed line again, because a restored line keeps its day.
        """
        return bool(self.removed) and latest == self.version + 1


class TurnView(ViewModel):
    """The result of a turn.

    `degraded` is the reason why no model completed the reply, else null. `failed` is true if a configured model failed,
    `forbidden` if a censor blocked the input or the reply; `warning` tells the user of either, or that the model
    refused the images of the input. `remembered` is false if nothing of the turn is stored. `redacted` counts the
    secrets removed from the input by kind. `rules` are the user's rules that the input laid down or lifted, `proposals`
    the lines that wait for approval, `learnt` the facts that it states, `no_longer` those that ended by it, and
    `kept_out` the messages that a model hid for it; `wills` says what was done about what it asks not to keep or to
    forget. `pending_approvals` has a line for each thing that waits for the user's approval and was not told within
    two weeks. `missing` maps failed parts, and sources that the context lacks, to reasons. `context_source` and
    `context_reason` say how the context was built; `context_summary` is null if none could be built. `input_tokens`
    and `output_tokens` are those of all calls of the model in this turn. `context` is filled on request.
    """

    text: str
    degraded: str | None
    from_memory: bool
    failed: bool
    forbidden: bool
    remembered: bool
    redacted: dict[str, int]
    warning: str | None
    missing_model_note: str
    proposals: list[ProposalView]
    rules: list[RuleChangeView]
    learnt: list[str]
    no_longer: list[str]
    kept_out: list[str] = Field([])
    wills: list[str] = Field([])
    pending_approvals: list[str]
    input_tokens: int
    output_tokens: int
    context_source: str
    context_reason: str
    context_summary: ContextView | None
    missing: dict[str, str]
    context: ContextResponse | None = Field(None, description="The full context.")


def to_turn_view(result: TurnResult, *, include_context: bool = False) -> TurnView:
    context = result.context
    bundle = context.bundle if context else None
    return TurnView.from_source(
        result,
        from_memory=result.quoted,
        warning=result.caveat,
        missing_model_note=result.shortcoming,
        proposals=[to_proposal_view(one) for one in result.rules.proposed],
        rules=[to_rule_view(one) for one in result.rules.changes],
        learnt=list(result.receipt.learnt),
        no_longer=list(result.receipt.no_longer),
        kept_out=list(result.receipt.kept_out),
        wills=list(result.wills),
        remembered=result.is_stored,
        input_tokens=result.tokens[0],
        output_tokens=result.tokens[1],
        context_source=context.method if context else "none",
        context_reason=context.reason if context else result.missing.get("context", ""),
        context_summary=to_context_view(bundle) if bundle else None,
        missing=dict(result.missing),
        context=bundle.as_json() if bundle and include_context else None,
    )


def to_context_view(bundle: Bundle) -> ContextView:
    evidence = [value for item in bundle.items if (value := item_evidence(bundle, item)) is not None]
    update = bundle.update
    return ContextView.from_source(
        bundle,
        frame=bundle.frame_choice.as_json(),
        question=bundle.assembly_input.gathering.as_json(),
        profile=bundle.profile.name,
        best_evidence=max(evidence, default=None),
        layers={name: layer.as_json() for name, layer in bundle.layers.items()},
        items=[_to_item_view(bundle, item) for item in bundle.items],
        dropped=len(bundle.rejected_candidates),
        near_misses=[_to_item_view(bundle, item) for item in bundle.rejected_candidates[:MAX_NEAR_MISSES]],
        identity=IdentityView(
            version=bundle.identity.version,
            lines=[format_tenet(tenet.part, tenet.text, tenet.said_on) for tenet in bundle.identity.shown],
            omitted=len(bundle.identity.omitted),
        ),
        missing=dict(bundle.missing),
        empty_time_ranges=list(bundle.empty_time_ranges),
        continued_from=update
        and ContinuationView(bundle_id=update.previous_bundle_id, added=len(update.added), evicted=len(update.evicted)),
    )


def item_evidence(bundle: Bundle, candidate: ScoredCandidate) -> float | None:
    """Return how well a memory matches the input; None if the memory was not found by search."""
    return None if candidate.memory_id in bundle.assembly_input.unranked else candidate.scored.found.evidence_score


def to_proposal_view(proposal: TenetProposal) -> ProposalView:
    tenet, replaced = proposal.tenet, [to_line(one) for one in proposal.instead_of]
    return ProposalView(line_id=tenet.tenet_id, text=tenet.text, section=tenet.part, conflicts_with=replaced)


def to_rule_view(change: RuleChange) -> RuleChangeView:
    added = to_line(change.added) if change.added else None
    removed = [to_line(one) for one in change.removed]
    return RuleChangeView(added=added, removed=removed, version=change.version)


def _to_item_view(bundle: Bundle, candidate: ScoredCandidate) -> ItemView:
    return ItemView.from_source(candidate, evidence=item_evidence(bundle, candidate), text=candidate.list_line)
