"""`newton censors`: what must not be done."""

from typing import Annotated

from cyclopts import Parameter

from newton.heart.censors import THRESHOLD, Action, Listed, Place, Rule, Sense
from newton.memory.hygiene import clean
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

Which = Annotated[str, Parameter(help="Its id, or the end of it as `newton censors list` shows it.")]


async def list_(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the censors with their records, those out of force last.

    Example: newton censors list
    """
    async with opened(settings(agent)) as newton:
        known = await newton.gate("cli").listed()
    if json:
        show.as_json([_plain(censor) for censor in known])
        return
    for censor in known:
        say(_told(censor))
    if not known:
        say('Nothing is forbidden. `newton censors add "push to main" --reason "releases go through review"`')


async def add(
    trigger: str,
    *,
    reason: Annotated[str, Parameter(help="Why it must not be done.")],
    sense: Annotated[
        Sense, Parameter(help="How the trigger is met: as words, as a pattern, or by its meaning.")
    ] = "phrase",
    action: Annotated[Action, Parameter(help="What happens when it is met.")] = "warn",
    domain: Annotated[str | None, Parameter(help="Where it counts, such as 'operations'.")] = None,
    threshold: Annotated[int, Parameter(help="After so many times in earnest a warning becomes a block.")] = THRESHOLD,
    agent: Agent = None,
) -> None:
    """Forbid something. A warning is shown to the model; a block stops the turn.

    Example: newton censors add "push to main" --reason "releases go through review" --action block

    Parameters
    ----------
    trigger:
        The words, the regular expression (RE2), or what it is about.
    """
    rule = Rule(
        trigger=clean(trigger, what="trigger"),
        reason=clean(reason, what="reason"),
        sense=sense,
        action=action,
        domain=domain,
        threshold=threshold,
    )
    async with opened(settings(agent)) as newton:
        new = await newton.gate("cli").forbid(rule)
        await newton.upkeep("cli").settle()
    say("In force." if new else "In force already; nothing changed.")


async def check(
    text: str,
    *,
    place: Annotated[Place, Parameter(help="What the text is.")] = "action",
    dry_run: Annotated[bool, Parameter(negative=(), help="Do not count it.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> int:
    """Ask the censors about a text before it is done or said. Exits with 1 when it is blocked.

    Example: newton censors check "push to main without review"
    """
    async with opened(settings(agent)) as newton:
        ruling = await newton.gate("cli").check(clean(text), place, dry=dry_run)
    met = [
        {"memory_id": str(c.memory_id), "blocks": c.blocks, "trigger": c.trigger, "reason": c.reason}
        for c in ruling.met
    ]
    if json:
        show.as_json({"blocked": ruling.blocks, "met": met, "unread": ruling.unread})
    else:
        say("\n".join(f"{short(c.memory_id)}  {c.line}" for c in ruling.met) or "Nothing speaks against it.")
        if ruling.unread:
            show.notice(f"(Censors that go by meaning were not asked: {ruling.unread})")
    return int(ruling.blocks)


async def wrong(censor: Which, *, agent: Agent = None) -> None:
    """Say that a censor was met wrongly the last time. One that is wrong too often is retired.

    Example: newton censors wrong 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        await newton.gate("cli").wrong(censor)
    say("Noted.")


async def approve(censor: Which, *, agent: Agent = None) -> None:
    """Put a proposed censor in force. What an agent or a model proposes waits for this.

    Example: newton censors approve 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        waited = await newton.gate("cli").approve(censor)
    say("In force." if waited else "It was not waiting; nothing changed.")


async def retire(censor: Which, *, agent: Agent = None) -> None:
    """Take a censor out of force.

    Example: newton censors retire 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        await newton.gate("cli").retire(censor)
    say("Out of force.")


def _told(censor: Listed) -> str:
    wrongly = f", {censor.false_positives} wrongly" if censor.false_positives else ""
    state = "PROPOSED" if censor.quarantined else censor.state
    where = f"in {censor.domain}, " if censor.domain else ""
    record = f"({where}met {censor.activations} times{wrongly})"
    action = "block" if censor.state == "ESCALATED" else censor.action
    return f"{short(censor.memory_id)}  {state:<9} {action:<5} {censor.trigger} — {censor.reason} {record}"


def _plain(censor: Listed) -> dict[str, object]:
    return {
        "memory_id": str(censor.memory_id),
        "state": censor.state,
        "proposed": censor.quarantined,
        "sense": censor.sense,
        "trigger": censor.trigger,
        "action": censor.action,
        "reason": censor.reason,
        "domain": censor.domain,
        "threshold": censor.threshold,
        "activations": censor.activations,
        "false_positives": censor.false_positives,
    }
