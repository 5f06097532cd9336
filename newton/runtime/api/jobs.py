"""What is done by itself: when, how it went last, and asking for it now."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field, JsonValue

from newton.runtime.api.caller import Admin, Reader
from newton.runtime.jobs.standing import Standing, ask, standings

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class Listed(BaseModel):
    """A job, and its last run; `because` says why it did what it did, `next_at` when it is due again."""

    name: str = Field(examples=["embed"])
    does: str
    schedule: str = Field(examples=["every 2 minutes"])
    next_at: datetime
    state: str | None = Field(examples=["done"])
    last_at: datetime | None
    seconds: float | None
    did: JsonValue
    because: str | None = Field(examples=["nothing waited for a vector"])
    error: str | None


class Jobs(BaseModel):
    jobs: Sequence[Listed]


class Asked(BaseModel):
    """The run that was asked for, or that was waiting or at work already."""

    job_id: UUID


@router.get("")
async def jobs(caller: Reader) -> Jobs:
    """Every job with its schedule and its last run."""
    return Jobs(jobs=[_listed(one) for one in await standings(caller.newton)])


@router.post("/{name}/run", status_code=202)
async def run(name: str, caller: Admin) -> Asked:
    """Have a job done now. It is queued; `GET /v1/jobs` says what came of it."""
    return Asked(job_id=await ask(caller.newton, name))


def _listed(one: Standing) -> Listed:
    return Listed(
        name=one.job.name,
        does=one.job.does,
        schedule=one.job.schedule.said,
        next_at=one.next_at,
        **one.told,
    )
