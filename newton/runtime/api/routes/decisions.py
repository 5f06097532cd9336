"""Endpoints that preview, record, list and review decisions."""

from dataclasses import replace
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.decision_inputs import DecisionInput, OutcomeInput, ThoughtInput
from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.services.decisions import DecisionPreview
from newton.brain.decisions import ManualLink
from newton.brain.draft import DecisionDraft, Stakes
from newton.brain.outcomes import Verdict
from newton.brain.quality import total_score
from newton.brain.queries import DecisionFilter
from newton.content.frames import get_frame
from newton.operations.results import CursorPage, ItemList
from newton.runtime.api import pagination
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, Cursor, Limit, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.path_ids import DecisionId, IdRef
from newton.runtime.tools.views import DecisionInfo, OutcomeInfo, to_decision_info
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


class DecisionQuery(RequestModel):
    """Filters of the list of decisions. `due` selects open decisions whose `look_again_at` has passed."""

    due: bool = False
    open: bool = False
    category: Name | None = None
    stakes: Stakes | None = None
    outcome: Verdict | None = None
    tag: Name | None = None
    limit: Limit = 50
    cursor: Cursor = None


class ReviewRequest(OutcomeInput):
    """The outcome of a decision."""

    reviewed_at: Timestamp | None = Field(None, description="When the outcome became known. Default: now.")


class ReviewResponse(ResponseModel):
    decision_id: UUID
    outcome: Verdict


class LinkRequest(RequestModel):
    """A link from the decision to another one."""

    model_config = with_example(other_id="0b7d114e", type="depends_on")

    other_id: IdRef
    type: Literal[ManualLink, "supersedes"] = Field("relates", description="What the decision does to the other one.")


class DecisionChangeResponse(ResponseModel):
    """The id of the changed decision."""

    decision_id: UUID


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


@router.get("")
async def list_decisions(caller: ReadAccess, query: Annotated[DecisionQuery, Query()]) -> CursorPage[DecisionInfo]:
    """List decisions, newest first. With `due`, the result is one page, sorted by `look_again_at`."""
    before = None if query.due else pagination.decode_id_cursor(query.cursor)
    max_rows = query.limit if query.due else query.limit + 1
    conditions = DecisionFilter(**query.model_dump(exclude={"limit", "cursor"}), before=before, limit=max_rows)
    found = [to_decision_info(one) for one in await caller.newton.decisions(ORIGIN).list_decisions(conditions)]
    return pagination.build_page(found, query.limit, lambda one: one, lambda one: one.decision_id)


@router.get("/outcomes")
async def list_outcomes(
    caller: ReadAccess, category: Name | None = None, outcome: Verdict | None = None, limit: Limit = 50
) -> ItemList[OutcomeInfo]:
    """List the reviewed decisions with their outcomes and lessons, latest review first."""
    found = await caller.newton.decisions(ORIGIN).list_outcomes(category=category, outcome=outcome, limit=limit)
    return ItemList(items=[OutcomeInfo.from_source(one) for one in found])


@router.get("/{decision_id}")
async def get_decision(decision_id: DecisionId, caller: ReadAccess) -> dict[str, Any]:
    """Return a decision with its reasons, thoughts, links and history."""
    return (await caller.newton.decisions(ORIGIN).get(decision_id.hex)).as_json()


@router.post("/{decision_id}/review", response_model=ReviewResponse)
async def review_decision(decision_id: DecisionId, body: ReviewRequest, act: WriteAction) -> Response:
    """Record the outcome of a decision. A decision can have only one outcome."""

    async def work(newton: AgentServices) -> ReviewResponse:
        await newton.decisions(ORIGIN).review(
            decision_id.hex, body.outcome, lesson=body.lesson, reviewed_at=body.reviewed_at, how="api"
        )
        return ReviewResponse(decision_id=decision_id, outcome=body.outcome)

    return await act.run_once(work)


@router.post("/{decision_id}/thoughts", status_code=201, response_model=DecisionChangeResponse)
async def add_thought(decision_id: DecisionId, body: ThoughtInput, act: WriteAction) -> Response:
    """Record a thought on an open decision."""

    async def work(newton: AgentServices) -> DecisionChangeResponse:
        await newton.decisions(ORIGIN).add_thought(decision_id.hex, body.text)
        return DecisionChangeResponse(decision_id=decision_id)

    return await act.run_once(work)


@router.post("/{decision_id}/done", response_model=DecisionChangeResponse)
async def mark_decision_done(decision_id: DecisionId, act: WriteAction) -> Response:
    """Mark a decision as carried out. Its outcome is reviewed later."""

    async def work(newton: AgentServices) -> DecisionChangeResponse:
        await newton.decisions(ORIGIN).mark_done(decision_id.hex)
        return DecisionChangeResponse(decision_id=decision_id)

    return await act.run_once(work)


@router.post("/{decision_id}/links", status_code=201, response_model=DecisionChangeResponse)
async def link_decisions(decision_id: DecisionId, body: LinkRequest, act: WriteAction) -> Response:
    """Link a decision to another one. With `supersedes`, the decision replaces the other one."""

    async def work(newton: AgentServices) -> DecisionChangeResponse:
        service = newton.decisions(ORIGIN)
        if body.type == "supersedes":
            await service.supersede(decision_id.hex, body.other_id)
        else:
            await service.link(decision_id.hex, body.type, body.other_id)
        return DecisionChangeResponse(decision_id=decision_id)

    return await act.run_once(work)


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
