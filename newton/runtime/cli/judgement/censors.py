"""Commands `newton censors`: prohibitions that warn of or block a text."""

from typing import Annotated

from cyclopts import Parameter

from newton.heart.censors import DEFAULT_THRESHOLD, CensorAction, CensorRule, CensorStage, CensorSummary, MatchMode
from newton.memory.hygiene import clean_text
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

CensorArgument = Annotated[
    str, Parameter(help="Id of the censor, or the end of the id as `newton censors list` prints it.")
]


async def list_censors(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the censors (prohibitions) and how often each matched. Retired censors come last.

    Example: newton censors list
    """
    async with open_agent(load_settings(agent)) as newton:
        censors = await newton.censors("cli").list_censors()
    if json:
        formatting.print_json([_censor_to_json(censor) for censor in censors])
        return
    for censor in censors:
        say(_format_censor(censor))
    if not censors:
        say('No censors yet. Add one: `newton censors add "push to main" --reason "releases go through review"`')


async def add_censor(
    trigger: Annotated[str, Parameter(help="Phrase, RE2 regular expression, or description of what is forbidden.")],
    *,
    reason: Annotated[str, Parameter(help="Why the trigger is forbidden.")],
    match_mode: Annotated[
        MatchMode, Parameter(help="Match the trigger as a phrase, as a regular expression, or by meaning.")
    ] = "phrase",
    action: Annotated[CensorAction, Parameter(help="Action on a match: warn or block.")] = "warn",
    domain: Annotated[
        str | None,
        Parameter(help="Domain of frames, such as architecture; other contexts show the censor only on a match."),
    ] = None,
    threshold: Annotated[int, Parameter(help="Number of matches after which a warning becomes a block.")] = (
        DEFAULT_THRESHOLD
    ),
    agent: AgentOption = None,
) -> None:
    """Add a censor, a prohibition. A warning is shown to the model; a block stops the turn.

    Example: newton censors add "push to main" --reason "releases go through review" --action block
    """
    rule = CensorRule(
        trigger=clean_text(trigger, what="trigger"),
        reason=clean_text(reason, what="reason"),
        match_mode=match_mode,
        action=action,
        domain=domain,
        threshold=threshold,
    )
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        is_new = await newton.censors("cli").add(rule)
        await newton.maintenance("cli").process_pending()
    say("Censor added." if is_new else "The censor is active already; nothing changed.")
    say(f"Note: {rule.describe_limits()}")


async def check_text(
    text: Annotated[str, Parameter(help="Text to check.")],
    *,
    stage: Annotated[
        CensorStage, Parameter(help="Kind of text: an input, an action (tool call) or an output (reply).")
    ] = "action",
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Check a text against the censors (prohibitions); no match is counted. The exit status is 1 if a censor blocks it.

    Example: newton censors check "push to main without review"
    """
    async with open_agent(load_settings(agent)) as newton:
        check = await newton.action_gate("cli").check(clean_text(text), stage, dry_run=True)
    if json:
        matches = [
            {"memory_id": str(c.memory_id), "blocks": c.is_blocking, "trigger": c.trigger, "reason": c.reason}
            for c in check.matches
        ]
        formatting.print_json({"blocked": check.blocks, "matches": matches, "unchecked": check.unchecked})
    else:
        lines = [f"{short_id(c.memory_id)}  {c.context_line}" for c in check.matches]
        say("\n".join(lines) or "No censor matches.")
        if check.unchecked:
            formatting.print_notice(f"(Censors that match by meaning were not checked, because: {check.unchecked})")
    return int(check.blocks)


async def report_false_positive(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Report the last match of a censor (a prohibition) as a false positive.

    A censor that became blocking because of many correct matches only warns again if too few of its matches remain
    correct. A censor with too many false positives is retired.

    Example: newton censors false-positive 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.censors("cli").report_false_positive(censor)
    say("False positive recorded.")


async def relax_censor(
    censor: CensorArgument,
    *,
    reason: Annotated[str, Parameter(help="Why the censor need not block; it is recorded.")] = "a person relaxed it",
    agent: AgentOption = None,
) -> None:
    """Make a blocking censor (a prohibition) only warn. Its count of matches starts again at zero.

    Example: newton censors relax 3f9c2a71 --reason "the logs are archived now"
    """
    async with open_agent(load_settings(agent)) as newton:
        is_relaxed = await newton.censors("cli").relax(censor, clean_text(reason, what="reason"))
    say("Relaxed: the censor only warns from now on." if is_relaxed else "The censor does not block; nothing changed.")


async def approve_censor(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Approve a censor (a prohibition) that an agent or a model proposed. It is inactive until then.

    Example: newton censors approve 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        was_pending = await newton.censors("cli").approve(censor)
    say("Censor approved." if was_pending else "The censor needs no approval; nothing changed.")


async def retire_censor(censor: CensorArgument, *, agent: AgentOption = None) -> None:
    """Retire a censor (a prohibition): it no longer matches any text.

    Example: newton censors retire 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.censors("cli").retire(censor)
    say("Censor retired.")


def _format_censor(censor: CensorSummary) -> str:
    false = f", {formatting.pluralize(censor.false_positives, 'false positive')}" if censor.false_positives else ""
    state = "PROPOSED" if censor.quarantined else censor.state
    domain = f"{censor.domain}; " if censor.domain else ""
    record = f"({domain}{formatting.pluralize(censor.activations, 'match', 'matches')}{false})"
    action = "block" if censor.state == "ESCALATED" else censor.action
    return f"{short_id(censor.memory_id)}  {state:<9} {action:<5} {censor.trigger} — {censor.reason} {record}"


def _censor_to_json(censor: CensorSummary) -> dict[str, object]:
    return {
        "memory_id": str(censor.memory_id),
        "state": censor.state,
        "proposed": censor.quarantined,
        "match_mode": censor.match_mode,
        "trigger": censor.trigger,
        "action": censor.action,
        "reason": censor.reason,
        "domain": censor.domain,
        "threshold": censor.threshold,
        "activations": censor.activations,
        "false_positives": censor.false_positives,
    }
