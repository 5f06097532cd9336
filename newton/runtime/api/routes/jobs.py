"""Endpoints of the scheduled background jobs."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.operations.results import ItemList
from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.api.base_models import Limit, ResponseModel
from newton.runtime.jobs import schedule
from newton.runtime.jobs.schedule import JobStatus, list_job_statuses, request_run

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


class JobInfo(ResponseModel):
    """A job and its last run. `reason` explains the result of the run; `next_run_at` is the time of the next run,
    null for a job that is off or whose schedule has ended, and `due_reason` says why it runs then.
    """

    name: str = Field(examples=["embed"])
    description: str
    schedule: str = Field(examples=["every 2 minutes"])
    next_run_at: datetime | None
    due_reason: str = Field(examples=["next slot of the schedule"])
    state: str | None = Field(examples=["done"])
    last_started_at: datetime | None
    duration_seconds: float | None
    result: Any
    reason: str | None = Field(examples=["every memory is embedded"])
    error: str | None


class JobRunInfo(ResponseModel):
    """A run of a job. `slot` is its scheduled time, `due_at` the time of its next attempt.

    `result` is what it changed, null if there was nothing to do, and `reason` explains it.
    """

    job_id: UUID
    state: str = Field(examples=["done"])
    slot: datetime
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_seconds: float | None
    attempts: int
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


@router.get("/{name}/runs")
async def list_job_runs(name: str, caller: ReadAccess, limit: Limit = 20) -> ItemList[JobRunInfo]:
    """List the runs of a job, latest first. Runs are kept for 30 days; of those without work, only the last one."""
    runs = await schedule.list_job_runs(caller.newton, name, limit=limit)
    return ItemList(
        items=[
            JobRunInfo.from_source(one, duration_seconds=one.duration.total_seconds() if one.duration else None)
            for one in runs
        ]
    )


@router.post("/{name}/run", status_code=202)
async def run_job(name: str, caller: AdminAccess) -> JobRunResponse:
    """Queue a run of a job now. `GET /v1/jobs` shows its result."""
    return JobRunResponse(job_id=await request_run(caller.newton, name))


def _to_job_info(job_status: JobStatus) -> JobInfo:
    last = job_status.last_run_fields
    return JobInfo.from_source(
        job_status.job,
        schedule=job_status.schedule,
        next_run_at=job_status.next_at,
        due_reason=job_status.due_reason,
        last_started_at=last["last_at"],
        duration_seconds=last["seconds"],
        result=last["did"],
        reason=last["because"],
        **{name: last[name] for name in ("state", "error")},
    )
