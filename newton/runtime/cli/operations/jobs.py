"""Commands `newton jobs`: scheduled jobs and their runs."""

from collections import Counter
from typing import Annotated

from cyclopts import Parameter

from newton.agent.llm.failing_models import list_failing_models
from newton.agent.maintenance.service import LifecycleReport
from newton.agent.reconciliation.proposal_log import list_records
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.operations.text_format import pluralize
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs import queue
from newton.runtime.jobs.maintenance import EXPIRED_CONTEXTS, LIFECYCLE
from newton.runtime.jobs.queue import JobOutcome, JobRun, RunResult
from newton.runtime.jobs.schedule import (
    NEXT_SLOT,
    JobStatus,
    build_runner,
    get_job,
    list_job_runs,
    list_job_statuses,
    request_run,
)
from newton.runtime.jobs.worker import JobWorker

MAX_SHOWN_TRANSITIONS = 40


async def list_jobs(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the jobs with their schedule, last run and next run.

    `newton serve` runs the jobs on schedule; `newton jobs run NAME` runs one now. A table [jobs.NAME] in newton.toml
    changes the schedule of a job: cron or every, timezone, jitter, start, end, enabled. Times are in UTC. A model that
    fails, or that is not asked any more, is named below the jobs.

    Example: newton jobs --agent ana
    """
    async with open_agent(load_settings(agent)) as newton:
        statuses = await list_job_statuses(newton)
        async with newton.scope.transaction() as tx:
            failing = await list_failing_models(tx, agent_id=newton.scope.agent_id)
            records = await list_records(tx, agent_id=newton.scope.agent_id, now=newton.scope.now())
    if json:
        formatting.print_json(list(map(_status_to_json, statuses)))
        return
    for one in statuses:
        due = f"next {one.next_at:%Y-%m-%d %H:%M}" if one.next_at else "no next run"
        why = "" if one.due_reason == NEXT_SLOT else f" ({one.due_reason})"
        say(f"{one.job.name:<20} {one.schedule:<24} {due}{why} · {_format_last_run(one.last_run)}")
    for model in (*failing, *(one for one in records if one.is_switched_off)):
        say(f"! {model.description}")


def _status_to_json(status: JobStatus) -> dict[str, object]:
    last = status.last_run
    return {
        "name": status.job.name,
        "schedule": status.schedule,
        "next_run_at": status.next_at and status.next_at.isoformat(),
        "due_reason": status.due_reason,
        "state": last and last.state,
        "last_started_at": last.started_at.isoformat() if last and last.started_at else None,
        "duration_seconds": last.duration.total_seconds() if last and last.duration else None,
        "result": last and last.result,
        "reason": last and last.reason,
        "error": last and last.error,
    }


def _format_last_run(last: JobRun | None) -> str:
    if last is None:
        return "not run yet"
    if last.state == "queued":
        attempts = pluralize(last.attempts, "attempt")
        return f"queued, after {attempts}: {last.error}" if last.error else "queued"
    if last.state == "running" or last.started_at is None or last.duration is None:
        return "running"
    result = f"dead: {last.error}" if last.state == "dead" else last.reason
    return f"{last.started_at:%Y-%m-%d %H:%M}, {last.duration.total_seconds():.1f} s: {result}"


async def show_job(
    job: Annotated[str, Parameter(help="Name of the job.")],
    *,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the last runs of a job: when, how long, what each changed and why, or its error; and the next run.

    Runs are kept for 30 days, at most 500. Of runs that had nothing to do, only the last one is kept.

    Example: newton jobs show embed
    """
    if limit < 1:
        raise InputError("The limit is out of range.", hint="Give a limit from 1.")
    name = get_job(job).name
    async with open_agent(load_settings(agent)) as newton:
        (status,) = [one for one in await list_job_statuses(newton) if one.job.name == name]
        runs = await list_job_runs(newton, name, limit=limit)
    if json:
        formatting.print_json(_status_to_json(status) | {"runs": list(map(_run_to_json, runs))})
        return
    due = f"next {status.next_at:%Y-%m-%d %H:%M}" if status.next_at else "no next run"
    say(f"{name}: {status.job.description}\n{status.schedule}; {due} ({status.due_reason})")
    for one in runs:
        say(f"  {_format_last_run(one)}{f', attempt {one.attempts}' if one.attempts > 1 else ''}")
        if one.result:
            say(f"    {_format_result(one.result)}")
    if not runs:
        say("  No runs are stored.")


def _run_to_json(run: JobRun) -> dict[str, object]:
    times = {"slot": run.slot, "due_at": run.due_at, "started_at": run.started_at, "finished_at": run.finished_at}
    return {
        **{name: at and at.isoformat() for name, at in times.items()},
        "job_id": str(run.job_id),
        "state": run.state,
        "attempts": run.attempts,
        "duration_seconds": run.duration.total_seconds() if run.duration else None,
        "result": run.result,
        "reason": run.reason,
        "error": run.error,
    }


async def run_job(
    job: Annotated[str, Parameter(help="Name of the job.")],
    *,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Only list the changes that are due (job lifecycle only).")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Run a job now. It is safe to run a job more than once.

    `lifecycle` runs all daily maintenance: it updates memory states and deletes expired contexts. `newton jobs` lists
    the other jobs.

    Example: newton jobs run lifecycle --dry-run
    """
    name = get_job(job).name
    if name != LIFECYCLE and dry_run:
        raise InputError(
            f"{name} does not support --dry-run.",
            hint="Only `newton jobs run lifecycle` supports --dry-run.",
        )
    async with open_agent(load_settings(agent)) as newton:
        if dry_run:
            due = await newton.maintenance(f"job {LIFECYCLE}").run_lifecycle(dry_run=True)
            _print_lifecycle_report(due, dry_run=True, json=json)
            return
        started_at = newton.scope.now()
        worker = JobWorker(newton.scope.db, build_runner(AgentRegistry(newton)))
        outcome = await worker.run_once(agent_id=newton.scope.agent_id, job_id=await request_run(newton, name))
        if name == LIFECYCLE:
            changes = await newton.curation(f"job {LIFECYCLE}").list_changes(started_at)
            expired = (outcome.result or {}).get(EXPIRED_CONTEXTS, 0)
            report = LifecycleReport([one.transition for one in changes], int(str(expired)))
            _print_lifecycle_report(report, dry_run=False, json=json)
            return
    _print_outcome(outcome, json=json)


def _print_outcome(outcome: JobOutcome, *, json: bool) -> None:
    if json:
        formatting.print_json({"reason": outcome.reason, "result": outcome.result})
        return
    result = _format_result(outcome.result or {})
    say(f"{'Done' if result else 'Nothing to do'}: {outcome.reason}.")
    if result:
        say(result)


def _format_result(result: RunResult) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')}: {value if isinstance(value, str | int | float) else ', '.join(value)}"
        for name, value in result.items()
    )


def _print_lifecycle_report(report: LifecycleReport, *, dry_run: bool, json: bool) -> None:
    transitions = report.steps
    if json:
        formatting.print_json(list(map(formatting.transition_to_json, transitions)))
        return
    for one in transitions[:MAX_SHOWN_TRANSITIONS]:
        say(f"{short_id(one.memory_id)}  {one.from_state:<11} → {one.to_state:<11} {one.event}: {one.reason}")
    if len(transitions) > MAX_SHOWN_TRANSITIONS:
        say(f"… and {len(transitions) - MAX_SHOWN_TRANSITIONS} more")
    done = ", ".join(f"{count} {event}" for event, count in Counter(one.event for one in transitions).most_common())
    say(f"{'Due' if dry_run else 'Done'}: {done or 'nothing'}.")
    if report.expired_contexts:
        many = pluralize(report.expired_contexts, "context")
        say(f"{many} deleted: older than NEWTON_BUNDLE_RETENTION_DAYS.")


async def list_dead_runs(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List dead runs: job runs that failed at their last attempt and are not repeated.

    Runs of a job that succeeded later are left out.

    Example: newton jobs dead --agent ana
    """
    async with open_agent(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        runs = await queue.list_dead(tx, agent_id=newton.scope.agent_id)
    if json:
        formatting.print_json([{"name": one.name, "slot": one.slot.isoformat(), "error": one.error} for one in runs])
        return
    for one in runs:
        attempts = pluralize(one.attempts, "attempt")
        say(f"{one.name:<20} due {one.slot:%Y-%m-%d %H:%M}, {attempts}: {one.error}")
    if not runs:
        say("No dead runs.")


async def retry_dead_runs(
    job: Annotated[
        str | None, Parameter(help="Name of the job; if omitted, all jobs with dead runs are retried.")
    ] = None,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Queue the last dead run of each job again. A dead run has failed at its last attempt and is not repeated.

    Example: newton jobs retry verify
    """
    name = get_job(job).name if job else None
    async with open_agent(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        names = await queue.retry_dead(tx, name, agent_id=newton.scope.agent_id)
    if json:
        formatting.print_json(names)
    else:
        say(
            f"Queued: {', '.join(names) or 'nothing'}. `newton serve` runs queued jobs; `newton jobs run` runs one now."
        )
