"""`newton censors`: what must not be done."""

from typing import Annotated

from cyclopts import Parameter

from newton.heart.censors import DEFAULT_THRESHOLD, CensorAction, CensorRule, CensorStage, CensorSummary, MatchMode
from newton.memory.hygiene import clean_text
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

CensorArgument = Annotated[str, Parameter(help="Its id, or the end of it as `newton censors list` shows it.")]


async def list_censors(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the censors with their records, those out of force last.

    Example: newton censors list
    """
    async with open_newton(load_settings(agent)) as newton:
        known = await newton.censors("cli").list_censors()
    if json:
        formatting.print_json([_censor_to_json(censor) for censor in known])
        return
    for censor in known:
        say(_format_censor(censor))
    if not known:
        say('Nothing is forbidden. `newton censors add "push to main" --reason "releases go through review"`')


async def add_censor(
    trigger: str,
    *,
    reason: Annotated[str, Parameter(help="Why it must not be done.")],
    sense: Annotated[
        MatchMode, Parameter(help="How the trigger is met: as words, as a pattern, or by its meaning.")
    ] = "phrase",
    action: Annotated[CensorAction, Parameter(help="What happens when it is met.")] = "warn",
    domain: Annotated[str | None, Parameter(help="Where it counts, such as 'operations'.")] = None,
    threshold: Annotated[
        int, Parameter(help="After so many times in earnest a warning becomes a block.")
    ] = DEFAULT_THRESHOLD,
    agent: AgentOption = None,
) -> None:
    """Forbid something. A warning is shown to the model; a block stops the turn.

    Example: newton censors add "push to main" --reason "releases go through review" --action block

    Parameters
    ----------
    trigger:
        The words, the regular expression (RE2), or what it is about.
    """
    rule = CensorRule(
        trigger=clean_text(trigger, what="trigger"),
        reason=clean_text(reason, what="reason"),
        match_mode=sense,
        action=action,
        domain=domain,
        threshold=threshold,
    )
    async with open_newton(load_settings(agent)) as newton:
        new = await newton.censors("cli").add(rule)
        await newton.maintenance("cli").process_pending()
    say("In force." if new else "In force already; nothing changed.")


async def check_text(
    text: str,
    *,
    place: Annotated[CensorStage, Parameter(help="What the text is.")] = "action",
    dry_run: Annotated[bool, Parameter(negative=(), help="Do not count it.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Ask the censors about a text before it is done or said. Exits with 1 when it is blocked.

    Example: newton censors check "push to main without review"
    """
    async with open_newton(load_settings(agent)) as newton:
        ruling = await newton.action_gate("cli").check(clean_text(text), place, dry_run=dry_run)
    met = [
        {"memory_id": str(c.memory_id), "blocks": c.is_blocking, "trigger": c.trigger, "reason": c.reason}
        for c in ruling.matches
    ]
    if json:
        formatting.print_json({"blocked": ruling.blocks, "met": met, "unread": ruling.unchecked})
    else:
        say(
            "\n".join(f"{short_id(c.memory_id)}  {c.context_line}" for c in ruling.matches)
            or "Nothing speaks against it."
        )
        if ruling.unchecked:
            formatting.print_notice(f"(Censors that go by meaning were not asked: {ruling.unchecked})")
    return int(ruling.blocks)


async def report_false_positive(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Say that a censor was met wrongly the last time. One that is wrong too often is retired.

    Example: newton censors false-positive 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.censors("cli").report_false_positive(censor)
    say("Noted.")


async def approve_censor(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Put a proposed censor in force. What an agent or a model proposes waits for this.

    Example: newton censors approve 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        waited = await newton.censors("cli").approve(censor)
    say("In force." if waited else "It was not waiting; nothing changed.")


async def retire_censor(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Take a censor out of force.

    Example: newton censors retire 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.censors("cli").retire(censor)
    say("Out of force.")


def _format_censor(censor: CensorSummary) -> str:
    wrongly = f", {censor.false_positives} wrongly" if censor.false_positives else ""
    state = "PROPOSED" if censor.quarantined else censor.state
    where = f"in {censor.domain}, " if censor.domain else ""
    record = f"({where}met {censor.activations} times{wrongly})"
    action = "block" if censor.state == "ESCALATED" else censor.action
    return f"{short_id(censor.memory_id)}  {state:<9} {action:<5} {censor.trigger} — {censor.reason} {record}"


def _censor_to_json(censor: CensorSummary) -> dict[str, object]:
    return {
        "memory_id": str(censor.memory_id),
        "state": censor.state,
        "proposed": censor.quarantined,
        "sense": censor.match_mode,
        "trigger": censor.trigger,
        "action": censor.action,
        "reason": censor.reason,
        "domain": censor.domain,
        "threshold": censor.threshold,
        "activations": censor.activations,
        "false_positives": censor.false_positives,
    }
