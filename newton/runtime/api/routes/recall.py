"""The endpoint that searches the memory."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.agent.field_types import Ref, Timestamp
from newton.agent.inputs import RecallInput
from newton.cognition.assembly.fact_labels import render_found
from newton.memory.memory import Kind, Trust
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel, with_example

router = APIRouter(prefix="/v1", tags=["memories"])


class RecallRequest(RecallInput):
    """A search in the memory."""

    model_config = with_example(query="Where does Ana live?", limit=5)

    limit: int = Field(10, ge=1, le=1_000)
    session: Ref | None = Field(
        None,
        description="The session in which you search. Its messages are preferred, and its working memory gets the"
        " results.",
        examples=["planning"],
    )
    include_quarantined: bool = Field(
        default=False,
        description="Include quarantined memories, such as tool output and text from the web. Without it, only the"
        " quarantined replies of `session` are found.",
    )
    as_of: Timestamp | None = Field(None, description="Search the memory as it was at this time.")


class RecallItem(ResponseModel):
    """A found memory and its scores. `evidence` is 0 for no match and about 1 for a clear match."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    evidence: float
    relevance: float = Field(description="`evidence` divided by the `evidence` of the best result.")
    cosine: float
    lexical: float
    probability: float | None = Field(
        description="The probability that the memory answers the query; null if it cannot be estimated."
    )
    occurred_at: datetime
    trust: Trust
    ref: str | None


class RecallResponse(ResponseModel):
    """The found memories, best first. `missing` names the kinds of search that were unavailable, and why."""

    items: list[RecallItem]
    missing: dict[str, str]
    note: str | None = Field(description="That nothing known answers, and what to try; null if anything was found.")


@router.post("/recall")
async def recall_memories(body: RecallRequest, caller: ReadAccess) -> RecallResponse:
    """Search the memory by meaning and by words.

    If a search has not ended at the deadline of the request (`X-Newton-Timeout`), the status is 503.
    """
    newton = caller.newton
    session_id = await newton.sessions(ORIGIN).find(body.session) if body.session else None
    memories = newton.memories(ORIGIN).with_min_relevance(body.min_relevance).with_deadline(caller.deadline)
    recalled = await memories.recall(
        body.query,
        kinds=body.kinds,
        limit=body.limit,
        include_quarantined=body.include_quarantined,
        as_of=body.as_of,
        session_id=session_id,
    )
    if body.as_of is None:
        used = newton.session_use(ORIGIN).for_session(session_id)
        await used.record([found.memory_id for found in recalled.memories])
    items = [
        RecallItem.from_source(
            memory,
            text=render_found(memory, memory.summary, memories.scope.now()),
            evidence=round(memory.evidence_score, 6),
            relevance=round(memory.relevance, 6),
            cosine=round(memory.similarity, 6),
            lexical=round(memory.lexical, 6),
            probability=recalled.find_probability(memory.memory_id),
        )
        for memory in recalled.memories
    ]
    note = memories.describe_nothing(recalled)
    return RecallResponse(items=items, missing=dict(recalled.missing), note=note)
