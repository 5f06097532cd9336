"""Recall: the memories most likely meant."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.memory.memory import RECALLED, Kind, Trust
from newton.memory.recall import Found
from newton.runtime.api.caller import Reader
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.transfer.given import Time, Words

router = APIRouter(prefix="/v1", tags=["memories"])


class ToRecall(Given):
    """What to look for."""

    text: Words = Field(examples=["Where does Ana live?"])
    kinds: list[Kind] | None = Field(None, min_length=1, description="Only these.", examples=[["fact"]])
    limit: int = Field(10, ge=1, le=1_000)
    quarantined: bool = Field(default=False, description="Also what tools and the web said.")
    as_of: Time | None = Field(None, description="As it was known at that moment, with a zone.")


class Hit(Answer):
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


class Recalled(Answer):
    """The best first. `missing` names what could not be asked, and why."""

    found: list[Hit]
    missing: dict[str, str]


@router.post("/recall")
async def recall(asked: ToRecall, caller: Reader) -> Recalled:
    """The memories most likely meant by a text."""
    recalled = await caller.newton.verbs(DOOR).recall(
        asked.text,
        kinds=asked.kinds or RECALLED,
        most=asked.limit,
        quarantined=asked.quarantined,
        as_of=asked.as_of,
    )
    return Recalled(found=[_hit(found) for found in recalled.found], missing=dict(recalled.missing))


def _hit(found: Found) -> Hit:
    return Hit(
        memory_id=found.memory_id,
        kind=found.kind,
        state=found.state,
        text=found.summary,
        evidence=round(found.evidence, 6),
        relevance=round(found.relevance, 6),
        cosine=round(found.similarity, 6),
        lexical=round(found.lexical, 6),
        occurred_at=found.occurred_at,
        trust=found.trust,
        ref=found.ref,
    )
