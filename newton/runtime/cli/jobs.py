"""`newton jobs`: the maintenance that keeps memories in their right states."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import Parameter

from newton.agent.extraction import Harvest
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.wiring import opened

SHOWN = 40


async def run(
    job: Literal["lifecycle", "extract", "compress"],
    *,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only show what is due.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Run a job now. Twice is like once.

    `lifecycle` moves every memory to the state that its record asks for, and lets go of old contexts. `extract` has the
    model, if one is set, read the conversations that it has not read yet. `compress` has it tell long lines shorter for
    contexts; the lines themselves stay as they were said.

    Example: newton jobs run lifecycle --dry-run

    Parameters
    ----------
    job:
        Which one.
    """
    async with opened(settings(agent)) as newton:
        upkeep = newton.upkeep(f"job {job}")
        if job == "extract":
            _harvested(await upkeep.extract(), json=json)
            return
        if job == "compress":
            _shortened(await upkeep.shorten(), json=json)
            return
        steps, expired = await upkeep.lifecycle(dry=dry_run)
    if json:
        show.as_json(
            [
                {"memory_id": str(s.memory_id), "event": s.event, "from": s.before, "to": s.after, "because": s.because}
                for s in steps
            ]
        )
        return
    for step in steps[:SHOWN]:
        print(f"{short(step.memory_id)}  {step.before:<11} → {step.after:<11} {step.event}: {step.because}")
    if len(steps) > SHOWN:
        print(f"… and {len(steps) - SHOWN} more")
    done = ", ".join(f"{count} {event}" for event, count in Counter(step.event for step in steps).most_common())
    print(f"{'Due' if dry_run else 'Done'}: {done or 'nothing'}.")
    if expired:
        print(f"{show.counted(expired, 'context')} let go: older than NEWTON_BUNDLE_DAYS.")


def _shortened(lines: int, *, json: bool) -> None:
    if json:
        show.as_json({"lines": lines})
    else:
        print(f"{show.counted(lines, 'long line')} told shorter.")


def _harvested(harvest: Harvest, *, json: bool) -> None:
    if json:
        show.as_json(asdict(harvest))
        return
    print(
        f"{harvest.conversations} conversations read: {harvest.facts} new facts, {harvest.procedures} procedures, "
        f"{harvest.censors} censors proposed."
    )
