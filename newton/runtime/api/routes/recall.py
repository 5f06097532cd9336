"""Recall: the memories most likely meant."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.memory.memory import RECALLABLE_KINDS, Kind, Trust
from newton.memory.search_types import RetrievedMemory
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.transfer.schema import CleanText, Timestamp

router = APIRouter(prefix="/v1", tags=["memories"])


class RecallRequest(RequestModel):
    """What to look for."""

    text: CleanText = Field(examples=["Where does Ana live?"])
    kinds: list[Kind] | None = Field(None, min_length=1, description="Only these.", examples=[["fact"]])
    limit: int = Field(10, ge=1, le=1_000)
    quarantined: bool = Field(default=False, description="Also what tools and the web said.")
    as_of: Timestamp | None = Field(None, description="As it was known at that moment, with a zone.")


class RecallItem(ResponseModel):
    """A memory with what speaks for it: evidence is 0 for nothing and about 1 for plain."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    evidence: float
    relevance: float = Field(description="The evidence as a part of the best one's.")
    cosine: float
    lexical: float
    occurred_at: datetime
    trust: Trust
    ref: str | None


class RecallResponse(ResponseModel):
    """The best first. `missing` names what could not be asked, and why."""

    found: list[RecallItem]
    missing: dict[str, str]


@router.post("/recall")
async def recall_memories(body: RecallRequest, caller: ReadAccess) -> RecallResponse:
    """The memories most likely meant by a text."""
    recalled = await caller.newton.memories(ORIGIN).recall(
        body.text,
        kinds=body.kinds or RECALLABLE_KINDS,
        limit=body.limit,
        include_quarantined=body.quarantined,
        as_of=body.as_of,
    )
    return RecallResponse(found=[_to_recall_item(found) for found in recalled.memories], missing=dict(recalled.missing))


def _to_recall_item(memory: RetrievedMemory) -> RecallItem:
    return RecallItem(
        memory_id=memory.memory_id,
        kind=memory.kind,
        state=memory.state,
        text=memory.summary,
        evidence=round(memory.evidence_score, 6),
        relevance=round(memory.relevance, 6),
        cosine=round(memory.similarity, 6),
        lexical=round(memory.lexical, 6),
        occurred_at=memory.occurred_at,
        trust=memory.trust,
        ref=memory.ref,
    )
