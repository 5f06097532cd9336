"""`newton jobs`: what is done by itself, how it went, and doing it now."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.agent.upkeep import Lived
from newton.errors import InputError
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs import queue
from newton.runtime.jobs.catalogue import job as known
from newton.runtime.jobs.catalogue import running
from newton.runtime.jobs.queue import Entry, Outcome
from newton.runtime.jobs.standing import Standing, ask, standings
from newton.runtime.jobs.work import Worker
from newton.runtime.minds import Minds
from newton.runtime.opening import opened

SHOWN = 40


async def list_(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the jobs: schedule, last run, how long it took, what it did and why, and when the next is due.

    `newton serve` does them; without it each is done when you ask: `newton jobs run NAME`.

    Example: newton jobs --agent ana
    """
    async with opened(settings(agent)) as newton:
        found = await standings(newton)
    if json:
        show.as_json([_plain(one) for one in found])
        return
    for one in found:
        say(f"{one.job.name:<20} {one.job.schedule.said:<24} next {one.next_at:%Y-%m-%d %H:%M} · {_went(one.last)}")


def _plain(one: Standing) -> dict[str, object]:
    told = {**one.told, "last_at": one.last.started_at.isoformat() if one.last and one.last.started_at else None}
    schedule = one.job.schedule.said
    return {"name": one.job.name, "schedule": schedule, "next_at": one.next_at.isoformat(), **told}


def _went(last: Entry | None) -> str:
    if last is None:
        return "not run yet"
    if last.state == "queued":
        return f"waits, after {show.counted(last.attempts, 'attempt')}: {last.error}" if last.error else "waits"
    if last.state == "running" or last.started_at is None or last.took is None:
        return "at work"
    said = f"given up: {last.error}" if last.state == "dead" else last.because
    return f"{last.started_at:%Y-%m-%d %H:%M}, {last.took.total_seconds():.1f} s: {said}"


async def run(
    job: str,
    *,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only show what is due; of lifecycle alone.")] = False,
    agent: Agent = None,
    json: AsJson = False,
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
    chosen = settings(agent)
    if job != "lifecycle":
        known(job)
    async with opened(chosen) as newton:
        if job == "lifecycle":
            _lived(await newton.upkeep("job lifecycle").lifecycle(dry=dry_run), dry=dry_run, json=json)
            return
        worker = Worker(newton.scope.db, running(Minds(newton)))
        outcome = await worker.once(agent_id=newton.scope.agent_id, job_id=await ask(newton, job))
    _told(outcome, json=json)


def _told(outcome: Outcome, *, json: bool) -> None:
    if json:
        show.as_json({"because": outcome.because, "did": outcome.did})
        return
    did = ", ".join(
        f"{name.replace('_', ' ')}: {value if isinstance(value, str | int | float) else ', '.join(value)}"
        for name, value in (outcome.did or {}).items()
    )
    say(f"{'Done' if did else 'Nothing to do'}: {outcome.because}.")
    if did:
        say(did)


def _lived(lived: Lived, *, dry: bool, json: bool) -> None:
    steps = lived.steps
    if json:
        show.as_json(
            [
                {"memory_id": str(s.memory_id), "event": s.event, "from": s.before, "to": s.after, "because": s.because}
                for s in steps
            ]
        )
        return
    for step in steps[:SHOWN]:
        say(f"{short(step.memory_id)}  {step.before:<11} → {step.after:<11} {step.event}: {step.because}")
    if len(steps) > SHOWN:
        say(f"… and {len(steps) - SHOWN} more")
    done = ", ".join(f"{count} {event}" for event, count in Counter(step.event for step in steps).most_common())
    say(f"{'Due' if dry else 'Done'}: {done or 'nothing'}.")
    if lived.expired:
        say(f"{show.counted(lived.expired, 'context')} let go: older than NEWTON_BUNDLE_DAYS.")


async def dead(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the runs that were given up after eight attempts, and that no later run has made up for.

    Example: newton jobs dead --agent ana
    """
    async with opened(settings(agent)) as newton, newton.scope.transaction() as tx:
        found = await queue.dead(tx, agent_id=newton.scope.agent_id)
    _given_up(found, json=json)


def _given_up(found: Sequence[Entry], *, json: bool) -> None:
    if json:
        told = [{"name": one.name, "slot": one.slot.isoformat(), "error": one.error} for one in found]
        show.as_json(told)
        return
    for one in found:
        say(f"{one.name:<20} due {one.slot:%Y-%m-%d %H:%M}, {show.counted(one.attempts, 'attempt')}: {one.error}")
    if not found:
        say("Nothing was given up.")


async def retry(
    job: Annotated[str | None, Parameter(help="Which one; all, if none is named.")] = None,
    *,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Have what was given up tried again: of each job the last run, for one does what many have left.

    Example: newton jobs retry verify
    """
    name = known(job).name if job else None
    async with opened(settings(agent)) as newton, newton.scope.transaction() as tx:
        names = await queue.revive(tx, name, agent_id=newton.scope.agent_id)
    if json:
        show.as_json(names)
    else:
        say(f"Queued again: {', '.join(names) or 'nothing'}. `newton serve` does it, or `newton jobs run NAME`.")
