"""What is done by itself: when, how it went last, and asking for it now."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field, JsonValue

from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.jobs.status import JobStatus, list_job_statuses, request_run

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class JobInfo(BaseModel):
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


class JobListResponse(BaseModel):
    jobs: Sequence[JobInfo]


class JobRunResponse(BaseModel):
    """The run that was asked for, or that was waiting or at work already."""

    job_id: UUID


@router.get("")
async def list_jobs(caller: ReadAccess) -> JobListResponse:
    """Every job with its schedule and its last run."""
    return JobListResponse(jobs=[_to_job_info(one) for one in await list_job_statuses(caller.newton)])


@router.post("/{name}/run", status_code=202)
async def run_job(name: str, caller: AdminAccess) -> JobRunResponse:
    """Have a job done now. It is queued; `GET /v1/jobs` says what came of it."""
    return JobRunResponse(job_id=await request_run(caller.newton, name))


def _to_job_info(status: JobStatus) -> JobInfo:
    return JobInfo(
        name=status.job.name,
        does=status.job.description,
        schedule=status.job.schedule.description,
        next_at=status.next_at,
        **status.last_run_fields,
    )
