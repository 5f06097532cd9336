"""Routes of searches in the memory: recall, entities and their relations."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.agent.inputs import RecallInput
from newton.heart.entities.entity_store import MAX_DEPTH
from newton.memory.memory import RECALLABLE_KINDS, Kind, Trust
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, Limit, ResponseModel, with_example
from newton.runtime.tools.views import EntityInfo, RelationInfo, to_entity_info, to_relation_info

router = APIRouter(prefix="/v1", tags=["memories"])


class RecallRequest(RecallInput):
    """A search."""

    model_config = with_example(query="Where does Ana live?", limit=5)

    limit: int = Field(10, ge=1, le=1_000)
    kinds: list[Kind] | None = Field(None, min_length=1, description="Search only memories of these kinds.")
    include_quarantined: bool = Field(default=False, description="Include tool output and text from the web.")
    as_of: Timestamp | None = Field(None, description="Search the memory as it was at this time.")


class RecallItem(ResponseModel):
    """A memory and its scores. `evidence` is 0 for no match and about 1 for a clear match."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    evidence: float
    relevance: float = Field(description="`evidence` divided by the `evidence` of the best result.")
    cosine: float
    lexical: float
    occurred_at: datetime
    trust: Trust
    ref: str | None


class RecallResponse(ResponseModel):
    """The results, best first. `missing` names the sources that were unavailable, and why."""

    items: list[RecallItem]
    missing: dict[str, str]


@router.post("/recall")
async def recall_memories(body: RecallRequest, caller: ReadAccess) -> RecallResponse:
    """Search the memory."""
    recalled = await caller.newton.memories(ORIGIN).recall(
        body.query,
        kinds=body.kinds or RECALLABLE_KINDS,
        limit=body.limit,
        include_quarantined=body.include_quarantined,
        as_of=body.as_of,
    )
    items = [
        RecallItem.from_source(
            memory,
            text=memory.summary,
            evidence=round(memory.evidence_score, 6),
            relevance=round(memory.relevance, 6),
            cosine=round(memory.similarity, 6),
            lexical=round(memory.lexical, 6),
        )
        for memory in recalled.memories
    ]
    return RecallResponse(items=items, missing=dict(recalled.missing))


@router.get("/entities")
async def list_entities(caller: ReadAccess, limit: Limit = 20) -> ItemList[EntityInfo]:
    """List the people and things that are mentioned most."""
    found = await caller.newton.entities(ORIGIN).list_entities(limit=limit)
    return ItemList(items=[to_entity_info(*pair) for pair in found])


@router.get("/entities/{name}/relations")
async def list_relations(
    name: str,
    caller: ReadAccess,
    depth: Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Maximum number of relations between them.")] = 1,
) -> ItemList[RelationInfo]:
    """List the relations of one entity, nearest first."""
    found = await caller.newton.entities(ORIGIN).find_related_entities(name, depth=depth)
    return ItemList(items=[to_relation_info(one) for one in found])
