"""Endpoints that preview and record decisions."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.decision_inputs import DecisionInput
from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.services.decisions import DecisionPreview
from newton.brain.draft import DecisionDraft
from newton.brain.quality import total_score
from newton.content.frames import get_frame
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.path_ids import IdRef
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/decisions", tags=["decisions"])


class DecisionRequest(DecisionInput):
    """A decision that is not carried out yet."""

    model_config = with_example(
        description="Use Redis for the cache",
        confidence=0.8,
        reasons=[{"kind": "analysis", "text": "reads outnumber writes"}],
        alternatives=["Memcached"],
        category="architecture",
        tags=["cache"],
    )

    tags: tuple[CleanText, ...] = ()
    look_again_at: Timestamp | None = Field(
        None, description="The review date: when the outcome of the decision should be known."
    )
    reviewed_by: Name | None = Field(None, description="Who reviewed the decision before it was made.")
    frame: Name | None = Field(None, description="The frame that sets the default stakes and category.")
    ref: Ref | None = Field(
        None, description="An id of your own. A second decision with the same `ref` is not recorded."
    )
    supersedes: list[IdRef] = Field(
        [], max_length=20, description="The ids of the earlier decisions that the new decision replaces."
    )

    def resolve(self, newton: AgentServices) -> DecisionDraft:
        """Return the decision to record, with missing stakes and category from its frame.

        Raises NotFoundError for an unknown frame.
        """
        frame = get_frame(newton.frames, self.frame) if self.frame else None
        own = {name: getattr(self, name) for name in ("tags", "look_again_at", "reviewed_by", "ref")}
        draft = replace(self.to_draft(newton.scope.now()), **own)
        if frame is None:
            return draft
        stakes = self.stakes if "stakes" in self.model_fields_set else frame.default_stakes
        category = self.category if "category" in self.model_fields_set else frame.category
        return replace(draft, stakes=stakes, category=category, frame=frame.name)


class SimilarDecision(ResponseModel):
    """A similar past decision, and its outcome if it was reviewed."""

    decision_id: UUID
    outcome: str | None
    cosine: float


class BaseRate(ResponseModel):
    """The success rate of reviewed decisions in the category. `success_rate` is null if none is reviewed."""

    category: str
    reviewed: int
    success_rate: float | None


class GuardrailVerdict(ResponseModel):
    """The result of checking one guardrail."""

    name: str
    verdict: str
    message: str


class CensorMatch(ResponseModel):
    """A censor that matches the decision, and whether it blocks or only warns."""

    memory_id: UUID
    blocks: bool


class DecisionPreviewResponse(ResponseModel):
    """The results of checking a decision: its quality, similar decisions, base rate, censors and guardrails.

    `missing` names the checks that could not be made, and why.
    """

    blocked: bool
    quality: float
    quality_parts: dict[str, float] = Field(description="The contribution of each criterion to `quality`.")
    precedents: list[SimilarDecision]
    base_rate: BaseRate
    censors: list[CensorMatch]
    guardrails: list[GuardrailVerdict]
    missing: dict[str, str]


class RecordDecisionResponse(DecisionPreviewResponse):
    """The recorded decision and the results of its checks.

    `is_new` is false if a decision with this `ref` is recorded already.
    """

    decision_id: UUID
    is_new: bool


@router.post("/preview")
async def preview_decision(body: DecisionRequest, caller: ReadAccess) -> DecisionPreviewResponse:
    """Check a decision without recording it. Returns similar decisions, base rate, censors and guardrails."""
    preview = await caller.newton.decisions(ORIGIN).preview(body.resolve(caller.newton))
    return DecisionPreviewResponse(**_preview_fields(preview))


@router.post("", status_code=201, response_model=RecordDecisionResponse)
async def record_decision(body: DecisionRequest, act: WriteAction) -> Response:
    """Record a decision before it is carried out. Nothing is recorded if a censor or a guardrail blocks it."""

    async def evaluate(newton: AgentServices) -> DecisionPreview:
        return await newton.decisions(ORIGIN).evaluate(body.resolve(newton))

    async def record(newton: AgentServices, preview: DecisionPreview) -> RecordDecisionResponse:
        result = await newton.decisions(ORIGIN).record(preview, supersedes=body.supersedes)
        return RecordDecisionResponse.from_source(result, **_preview_fields(result.preview))

    return await act.run_after(evaluate, record)


def _preview_fields(preview: DecisionPreview) -> dict[str, Any]:
    record = preview.track_record
    return {
        "blocked": preview.blocks,
        "quality": total_score(preview.quality),
        "quality_parts": preview.quality,
        "precedents": [
            SimilarDecision.from_source(one, decision_id=one.memory_id, cosine=round(one.similarity, 6))
            for one in preview.precedents
        ],
        "base_rate": BaseRate(
            category=preview.draft.category, reviewed=record.category_judged, success_rate=record.category_success_rate
        ),
        "censors": [CensorMatch.from_source(one, blocks=one.is_blocking) for one in preview.censor_check.matches],
        "guardrails": [GuardrailVerdict.from_source(one, name=one.rule.name) for one in preview.guardrail_results],
        "missing": preview.missing,
    }
