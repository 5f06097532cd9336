"""`newton guard`: what must hold of a decision before it is recorded."""

from typing import Annotated

from cyclopts import Parameter

from newton.brain.codec import validate_draft
from newton.brain.draft import DecisionDraft, Stakes
from newton.brain.guardrail_engine import GuardrailResult, GuardrailRule
from newton.brain.guardrail_store import GuardrailStatus
from newton.clock import SystemClock
from newton.content.guardrails import Severity
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.decisions.decide import parse_reason
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

GuardrailName = Annotated[str, Parameter(help="The guardrail's name.")]

ADD_MESSAGES = {
    "added": "In force.",
    "replaced": "In force, in the place of the one of that name.",
    "unchanged": "In force already; nothing changed.",
}
VERDICT_LABELS = {"passed": "passed", "warned": "WARNED", "blocked": "BLOCKED", "not_evaluated": "BLOCKED"}


async def list_guardrails(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the guardrails: what each forbids, and what to do instead.

    Example: newton guard list
    """
    async with open_newton(load_settings(agent)) as newton:
        known = await newton.guardrails("cli").list_guardrails()
    if json:
        formatting.print_json([_guardrail_to_json(listed) for listed in known])
    else:
        say("\n".join(_format_guardrail(listed) for listed in known) or "There are none.")


async def add_guardrail(
    name: GuardrailName,
    expression: str,
    *,
    message: Annotated[str, Parameter(help="What to do instead.")],
    severity: Annotated[Severity, Parameter(help="What happens to a choice that breaks it.")] = "block",
    description: Annotated[str, Parameter(help="Why there is such a rule.")] = "",
    agent: AgentOption = None,
) -> None:
    """Add a guardrail for this agent, or put another in the place of one of that name.

    The expression is CEL and says when the rule is BROKEN. It may speak of description, context, alternatives, reasons
    (their kinds), reason_kinds (each once), tags, category, stakes, confidence, frame, expected, reviewed_by, ref, at,
    look_again_at, and of the record: record.decisions, judged, open, overdue, success_rate, brier, category_judged,
    category_success_rate. A text that is not given is '', a time or a rate that is not known yet is null.

    Example: newton guard add too-many-open "record.overdue > 5" --message "Review some decisions first."

    Parameters
    ----------
    expression:
        True when a choice breaks the rule, such as "category == 'money' && size(alternatives) < 2".
    """
    rule = GuardrailRule(
        name=name, expression=expression, severity=severity, message=message, description=description, source="own"
    )
    async with open_newton(load_settings(agent)) as newton:
        done = await newton.guardrails("cli").add(rule)
    say(ADD_MESSAGES[done])


async def check_guardrails(
    description: str = "",
    *,
    confidence: Annotated[float, Parameter(help="How sure you are, from 0 to 1.")],
    stakes: Annotated[Stakes, Parameter(help="How much depends on it.")] = "medium",
    category: Annotated[str, Parameter(help="What it is about.")] = "process",
    reason: Annotated[
        tuple[str, ...], Parameter(help="A reason as KIND:TEXT, such as 'analysis:it is cheaper'.", negative=())
    ] = (),
    alternative: Annotated[tuple[str, ...], Parameter(help="What else was considered.", negative=())] = (),
    tag: Annotated[tuple[str, ...], Parameter(help="A tag.", negative=())] = (),
    context: Annotated[str | None, Parameter(help="What the choice depends on.")] = None,
    frame: Annotated[str | None, Parameter(help="The frame it is made under.")] = None,
    expected: Annotated[str | None, Parameter(help="What should come of it.")] = None,
    reviewed_by: Annotated[str | None, Parameter(help="Who else has looked at it.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Ask the guardrails about a choice; nothing is recorded. Exits with 1 when it would be blocked.

    Example: newton guard check "Drop the old table" --stakes high --confidence 0.4 --reason analysis:unused

    Parameters
    ----------
    description:
        What would be chosen.
    """
    choice = DecisionDraft(
        description=description or "a choice",
        confidence=confidence,
        at=SystemClock().now(),
        context=context,
        alternatives=alternative,
        reasons=tuple(parse_reason(given) for given in reason),
        tags=tag,
        category=category,
        stakes=stakes,
        frame=frame,
        expected=expected,
        reviewed_by=reviewed_by,
    )
    async with open_newton(load_settings(agent)) as newton:
        _, rulings = await newton.decisions("cli").check_guardrails(validate_draft(choice))
    blocked = any(ruling.blocks for ruling in rulings)
    if json:
        formatting.print_json({"blocked": blocked, "guardrails": [_result_to_json(ruling) for ruling in rulings]})
    else:
        say("\n".join(_format_result(ruling) for ruling in rulings) or "There are no guardrails.")
    return int(blocked)


async def retire_guardrail(name: GuardrailName, *, agent: AgentOption = None) -> None:
    """Take a guardrail out of force for this agent, one that ships with Newton too.

    Example: newton guard retire one-kind-of-reason
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.guardrails("cli").retire(name)
    say("Out of force.")


async def restore_guardrail(name: GuardrailName, *, agent: AgentOption = None) -> None:
    """Put the guardrail of a file back in force as it stands there.

    Example: newton guard restore one-kind-of-reason
    """
    async with open_newton(load_settings(agent)) as newton:
        changed = await newton.guardrails("cli").restore(name)
    say("In force." if changed else "In force already; nothing changed.")


def _format_guardrail(guardrail: GuardrailStatus) -> str:
    rule = guardrail.rule
    state = rule.severity if guardrail.in_force else "RETIRED"
    whose = " (own)" if rule.source == "own" else ""
    return f"{state:<8}{rule.name}{whose}: {rule.expression}\n        {rule.message}"


def _guardrail_to_json(guardrail: GuardrailStatus) -> dict[str, object]:
    rule = guardrail.rule
    return {
        "name": rule.name,
        "in_force": guardrail.in_force,
        "severity": rule.severity,
        "expression": rule.expression,
        "message": rule.message,
        "description": rule.description,
        "source": rule.source,
    }


def _format_result(result: GuardrailResult) -> str:
    said = f": {result.error or result.rule.message}" if result.verdict != "passed" else ""
    failed = " could not be evaluated" if result.verdict == "not_evaluated" else ""
    return f"{VERDICT_LABELS[result.verdict]:<8}{result.rule.name}{failed}{said}"


def _result_to_json(result: GuardrailResult) -> dict[str, object]:
    rule = result.rule
    said = None if result.verdict == "passed" else rule.message
    return {
        "name": rule.name,
        "verdict": result.verdict,
        "blocks": result.blocks,
        "severity": rule.severity,
        "message": said,
        "why": result.error,
    }
