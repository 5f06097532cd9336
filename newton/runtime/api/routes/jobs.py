"""Endpoints of the scheduled background jobs."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.api.base_models import ItemList, ResponseModel
from newton.runtime.jobs.status import JobStatus, list_job_statuses, request_run

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class JobInfo(ResponseModel):
    """A job and its last run. `reason` explains the result of the run; `next_run_at` is the time of the next run,
    null for a job that is off or whose schedule has ended.
    """

    name: str = Field(examples=["embed"])
    description: str
    schedule: str = Field(examples=["every 2 minutes"])
    next_run_at: datetime | None
    state: str | None = Field(examples=["done"])
    last_started_at: datetime | None
    duration_seconds: float | None
    result: Any
    reason: str | None = Field(examples=["every memory is embedded"])
    error: str | None


class JobRunResponse(ResponseModel):
    """The id of the requested run, or of the run that was already queued or running."""

    job_id: UUID


@router.get("")
async def list_jobs(caller: ReadAccess) -> ItemList[JobInfo]:
    """List the jobs with their schedules and their last runs."""
    return ItemList(items=[_to_job_info(one) for one in await list_job_statuses(caller.newton)])


@router.post("/{name}/run", status_code=202)
async def run_job(name: str, caller: AdminAccess) -> JobRunResponse:
    """Queue a run of a job now. `GET /v1/jobs` shows its result."""
    return JobRunResponse(job_id=await request_run(caller.newton, name))


def _to_job_info(status: JobStatus) -> JobInfo:
    last = status.last_run_fields
    return JobInfo.from_source(
        status.job,
        schedule=status.schedule,
        next_run_at=status.next_at,
        last_started_at=last["last_at"],
        duration_seconds=last["seconds"],
        result=last["did"],
        reason=last["because"],
        **{name: last[name] for name in ("state", "error")},
    )
