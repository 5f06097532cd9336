"""Remember and recall."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from newton.agent.verbs import Remark
from newton.runtime.api.caller import Writer

router = APIRouter(prefix="/v1", tags=["memories"])


class ToRemember(BaseModel):
    """A fact as it is told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str = Field(examples=["Ana lives in Porto."])
    subject: str | None = Field(None, examples=["Ana"])
    attribute: str | None = Field(None, examples=["home"])
    confidence: float | None = Field(None, ge=0, le=1)
    importance: float | None = Field(None, ge=0, le=10)
    at: datetime | None = None
    until: datetime | None = None


class Remembered(BaseModel):
    """What became of it: new, confirmed, or in the place of another."""

    memory_id: UUID
    learnt: str = Field(examples=["new"])


@router.post("/memories", status_code=201)
async def remember(told: ToRemember, caller: Writer) -> Remembered:
    """Keep a fact, or confirm it when it is known."""
    kept = await caller.newton.verbs("http").remember(Remark(**told.model_dump()))
    return Remembered(memory_id=kept.memory_id, learnt=str(kept.learnt))
