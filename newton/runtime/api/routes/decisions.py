"""Decisions: looked at before, recorded, listed, and given their outcome."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.services.decisions import DecisionPreview
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.brain.quality import total_score
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.content.frames import get_frame
from newton.runtime.api import pagination
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import Cursor, CursorPage, Limit, RequestModel, ResponseModel
from newton.runtime.transfer.schema import CleanText, Name, Ref, Timestamp
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/decisions", tags=["decisions"])


class ReasonRequest(RequestModel):
    """Why, and by which kind of reasoning."""

    kind: ReasonKind
    text: CleanText


class DecisionRequest(RequestModel):
    """A decision before it is carried out."""

    description: CleanText = Field(examples=["Use Redis for the cache"])
    confidence: float = Field(ge=0, le=1, description="How sure you are that it will succeed.", examples=[0.8])
    reasons: list[ReasonRequest] = Field([], examples=[[{"kind": "analysis", "text": "reads outnumber writes"}]])
    alternatives: list[CleanText] = Field([], examples=[["Memcached"]])
    stakes: Stakes | None = None
    category: Name | None = Field(None, examples=["architecture"])
    tags: list[CleanText] = Field([], examples=[["cache"]])
    context: CleanText | None = Field(None, description="The situation in which it is made.")
    expected: CleanText | None = Field(None, description="What should come of it.")
    look_again_at: Timestamp | None = Field(None, description="When that should be known, with a zone.")
    reviewed_by: Name | None = None
    frame: Name | None = Field(None, description="Take stakes and category from this frame.")
    ref: Ref | None = Field(None, description="Your own id of it: under the same one it is recorded once.")
    supersedes: list[UUID] = Field([], max_length=20, description="The decisions whose place it takes.")

    def to_draft(self, newton: AgentServices) -> DecisionDraft:
        """It as a choice of this moment. Raises NotFoundError for an unknown frame."""
        usual = get_frame(newton.frames, self.frame) if self.frame else None
        own = self.model_dump(include={"description", "confidence", "context", "expected", "look_again_at"})
        return DecisionDraft(
            **own,
            at=newton.scope.now(),
            reasons=tuple(DecisionReason(one.kind, one.text) for one in self.reasons),
            alternatives=tuple(self.alternatives),
            tags=tuple(self.tags),
            stakes=self.stakes or (usual.default_stakes if usual else "medium"),
            category=self.category or (usual.category if usual else "process"),
            frame=usual.name if usual else None,
            reviewed_by=self.reviewed_by,
            ref=self.ref,
        )


class SimilarDecision(ResponseModel):
    """A decision of the past that is like it."""

    decision_id: UUID
    outcome: str | None
    cosine: float


class BaseRate(ResponseModel):
    """How decisions of the category went; the rate is null while none was judged."""

    category: str
    judged: int
    success_rate: float | None


class GuardrailVerdict(ResponseModel):
    """What a guardrail says of it."""

    name: str
    verdict: str
    words: str


class CensorMatch(ResponseModel):
    """A censor that it met."""

    memory_id: UUID
    blocks: bool


class DecisionPreviewResponse(ResponseModel):
    """What speaks for and against it."""

    blocked: bool
    quality: float
    parts: dict[str, float] = Field(description="What each part of it gives to its quality.")
    precedents: list[SimilarDecision]
    base_rate: BaseRate
    censors: list[CensorMatch]
    guardrails: list[GuardrailVerdict]
    missing: dict[str, str]


class RecordDecisionResponse(DecisionPreviewResponse):
    """The decision that is in the ledger; one that was there already is not new."""

    decision_id: UUID
    new: bool


class DecisionInfo(ResponseModel):
    """A decision in a list; its description is null when its words were erased."""

    decision_id: UUID
    state: str
    description: str | None
    decided_at: datetime
    confidence: float
    category: str
    stakes: Stakes
    frame: str | None
    look_again_at: datetime | None
    overdue: bool
    outcome: Verdict | None
    reviewed_at: datetime | None
    how: str | None


class DecisionQuery(RequestModel):
    """Which decisions are asked for. `due`: open, and the date to look again has passed."""

    due: bool = False
    open: bool = False
    category: Name | None = None
    stakes: Stakes | None = None
    outcome: Verdict | None = None
    tag: Name | None = None
    limit: Limit = 50
    cursor: Cursor = None


class ReviewRequest(RequestModel):
    """What became of it."""

    outcome: Verdict
    lesson: CleanText | None = Field(None, examples=["Measure the hit rate before, not after."])
    at: Timestamp | None = Field(None, description="When that was known, with a zone; without it, now.")


class ReviewResponse(ResponseModel):
    decision_id: UUID
    outcome: Verdict


@router.post("/look")
async def preview_decision(body: DecisionRequest, caller: ReadAccess) -> DecisionPreviewResponse:
    """Similar decisions, censors, guardrails and the base rate of a choice. Nothing is recorded."""
    return DecisionPreviewResponse(
        **_preview_fields(await caller.newton.decisions(ORIGIN).preview(body.to_draft(caller.newton)))
    )


@router.post("", status_code=201, response_model=RecordDecisionResponse)
async def record_decision(body: DecisionRequest, act: WriteAction) -> Response:
    """Record a decision before it is carried out. What a censor or a guardrail forbids is not recorded."""

    async def weigh(newton: AgentServices) -> DecisionPreview:
        return await newton.decisions(ORIGIN).evaluate(body.to_draft(newton))

    async def record(newton: AgentServices, outlook: DecisionPreview) -> RecordDecisionResponse:
        made = await newton.decisions(ORIGIN).record(outlook, supersedes=[one.hex for one in body.supersedes])
        return RecordDecisionResponse(decision_id=made.decision_id, new=made.is_new, **_preview_fields(made.preview))

    return await act.run_after(weigh, record)


@router.get("")
async def list_decisions(caller: ReadAccess, query: Annotated[DecisionQuery, Query()]) -> CursorPage[DecisionInfo]:
    """Decisions, the latest first; those that are due by their dates, all on one page."""
    before = None if query.due else pagination.decode_id_cursor(query.cursor)
    most = query.limit if query.due else query.limit + 1
    chosen = query.model_dump(exclude={"limit", "cursor"})
    found = await caller.newton.decisions(ORIGIN).list_decisions(DecisionFilter(**chosen, before=before, limit=most))
    return pagination.build_page(found, query.limit, _to_decision_info, lambda one: one.decision_id)


@router.get("/{decision_id}")
async def get_decision(decision_id: UUID, caller: ReadAccess) -> dict[str, Any]:
    """A decision with everything that belongs to it."""
    return (await caller.newton.decisions(ORIGIN).get(decision_id.hex)).as_json()


@router.post("/{decision_id}/review", response_model=ReviewResponse)
async def review_decision(decision_id: UUID, body: ReviewRequest, act: WriteAction) -> Response:
    """Give a decision its outcome, once."""

    async def work(newton: AgentServices) -> ReviewResponse:
        deciding = newton.decisions(ORIGIN)
        await deciding.review(decision_id.hex, body.outcome, lesson=body.lesson, reviewed_at=body.at, how="api")
        return ReviewResponse(decision_id=decision_id, outcome=body.outcome)

    return await act.run_once(work)


def _preview_fields(preview: DecisionPreview) -> dict[str, Any]:
    stands = preview.track_record
    return {
        "blocked": preview.blocks,
        "quality": total_score(preview.quality),
        "parts": preview.quality,
        "precedents": [
            SimilarDecision(decision_id=found.memory_id, outcome=found.outcome, cosine=round(found.similarity, 6))
            for found in preview.precedents
        ],
        "base_rate": BaseRate(
            category=preview.draft.category,
            judged=stands.category_judged,
            success_rate=stands.category_success_rate,
        ),
        "censors": [
            CensorMatch(memory_id=one.memory_id, blocks=one.is_blocking) for one in preview.censor_check.matches
        ],
        "guardrails": [
            GuardrailVerdict(name=one.rule.name, verdict=one.verdict, words=one.message)
            for one in preview.guardrail_results
        ],
        "missing": preview.missing,
    }


def _to_decision_info(summary: DecisionSummary) -> DecisionInfo:
    return DecisionInfo(**{name: getattr(summary, name) for name in DecisionInfo.model_fields})
