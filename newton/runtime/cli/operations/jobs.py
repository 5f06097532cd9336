"""`newton jobs`: what is done by itself, how it went, and doing it now."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.agent.maintenance.service import LifecycleReport
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import JobOutcome, JobRun
from newton.runtime.jobs.registry import build_runner
from newton.runtime.jobs.registry import get_job as known
from newton.runtime.jobs.status import JobStatus, list_job_statuses, request_run
from newton.runtime.jobs.worker import JobWorker

MAX_SHOWN_TRANSITIONS = 40


async def list_jobs(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the jobs: schedule, last run, how long it took, what it did and why, and when the next is due.

    `newton serve` does them; without it each is done when you ask: `newton jobs run NAME`.

    Example: newton jobs --agent ana
    """
    async with open_newton(load_settings(agent)) as newton:
        found = await list_job_statuses(newton)
    if json:
        formatting.print_json([_status_to_json(one) for one in found])
        return
    for one in found:
        say(
            f"{one.job.name:<20} {one.job.schedule.description:<24} next "
            f"{one.next_at:%Y-%m-%d %H:%M} · {_format_last_run(one.last_run)}"
        )


def _status_to_json(status: JobStatus) -> dict[str, object]:
    told = {
        **status.last_run_fields,
        "last_at": status.last_run.started_at.isoformat() if status.last_run and status.last_run.started_at else None,
    }
    schedule = status.job.schedule.description
    return {"name": status.job.name, "schedule": schedule, "next_at": status.next_at.isoformat(), **told}


def _format_last_run(last: JobRun | None) -> str:
    if last is None:
        return "not run yet"
    if last.state == "queued":
        return f"waits, after {formatting.pluralize(last.attempts, 'attempt')}: {last.error}" if last.error else "waits"
    if last.state == "running" or last.started_at is None or last.duration is None:
        return "at work"
    said = f"given up: {last.error}" if last.state == "dead" else last.reason
    return f"{last.started_at:%Y-%m-%d %H:%M}, {last.duration.total_seconds():.1f} s: {said}"


async def run_job(
    job: str,
    *,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only show what is due; of lifecycle alone.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Run a job now. Twice is like once.

    `lifecycle` is all of the daily upkeep: it moves every memory to the state that its record asks for, and lets go of
    old contexts. The others are those that `newton jobs` lists.

    Example: newton jobs run lifecycle --dry-run

    Parameters
    ----------
    job:
        Which one.
    """
    if job != "lifecycle" and dry_run:
        raise InputError(f"{known(job).name} has no --dry-run.", hint="`newton jobs run lifecycle --dry-run` has.")
    chosen = load_settings(agent)
    if job != "lifecycle":
        known(job)
    async with open_newton(chosen) as newton:
        if job == "lifecycle":
            _print_lifecycle_report(
                await newton.maintenance("job lifecycle").run_lifecycle(dry_run=dry_run), dry_run=dry_run, json=json
            )
            return
        worker = JobWorker(newton.scope.db, build_runner(AgentRegistry(newton)))
        outcome = await worker.run_once(agent_id=newton.scope.agent_id, job_id=await request_run(newton, job))
    _print_outcome(outcome, json=json)


def _print_outcome(outcome: JobOutcome, *, json: bool) -> None:
    if json:
        formatting.print_json({"because": outcome.reason, "did": outcome.result})
        return
    did = ", ".join(
        f"{name.replace('_', ' ')}: {value if isinstance(value, str | int | float) else ', '.join(value)}"
        for name, value in (outcome.result or {}).items()
    )
    say(f"{'Done' if did else 'Nothing to do'}: {outcome.reason}.")
    if did:
        say(did)


def _print_lifecycle_report(report: LifecycleReport, *, dry_run: bool, json: bool) -> None:
    steps = report.steps
    if json:
        formatting.print_json(
            [
                {
                    "memory_id": str(s.memory_id),
                    "event": s.event,
                    "from": s.from_state,
                    "to": s.to_state,
                    "because": s.reason,
                }
                for s in steps
            ]
        )
        return
    for step in steps[:MAX_SHOWN_TRANSITIONS]:
        say(f"{short_id(step.memory_id)}  {step.from_state:<11} → {step.to_state:<11} {step.event}: {step.reason}")
    if len(steps) > MAX_SHOWN_TRANSITIONS:
        say(f"… and {len(steps) - MAX_SHOWN_TRANSITIONS} more")
    done = ", ".join(f"{count} {event}" for event, count in Counter(step.event for step in steps).most_common())
    say(f"{'Due' if dry_run else 'Done'}: {done or 'nothing'}.")
    if report.expired_contexts:
        many = formatting.pluralize(report.expired_contexts, "context")
        say(f"{many} deleted: older than NEWTON_BUNDLE_RETENTION_DAYS.")


async def list_dead_runs(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the runs that were given up after eight attempts, and that no later run has made up for.

    Example: newton jobs dead --agent ana
    """
    async with open_newton(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        found = await queue.list_dead(tx, agent_id=newton.scope.agent_id)
    _print_dead_runs(found, json=json)


def _print_dead_runs(runs: Sequence[JobRun], *, json: bool) -> None:
    if json:
        told = [{"name": one.name, "slot": one.slot.isoformat(), "error": one.error} for one in runs]
        formatting.print_json(told)
        return
    for one in runs:
        say(
            f"{one.name:<20} due {one.slot:%Y-%m-%d %H:%M}, "
            f"{formatting.pluralize(one.attempts, 'attempt')}: {one.error}"
        )
    if not runs:
        say("Nothing was given up.")


async def retry_dead_runs(
    job: Annotated[str | None, Parameter(help="Which one; all, if none is named.")] = None,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Have what was given up tried again: of each job the last run, for one does what many have left.

    Example: newton jobs retry verify
    """
    name = known(job).name if job else None
    async with open_newton(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        names = await queue.retry_dead(tx, name, agent_id=newton.scope.agent_id)
    if json:
        formatting.print_json(names)
    else:
        say(f"Queued again: {', '.join(names) or 'nothing'}. `newton serve` does it, or `newton jobs run NAME`.")
