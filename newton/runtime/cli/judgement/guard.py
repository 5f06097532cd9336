"""Commands `newton guard`: guardrails, which are rules checked before a decision is recorded."""

from typing import Annotated

from cyclopts import Parameter

from newton.brain.codec import validate_draft
from newton.brain.draft import DecisionDraft, Stakes
from newton.brain.guardrail_engine import GuardrailResult, GuardrailRule
from newton.clock import SystemClock
from newton.content.guardrails import Severity
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.decisions.decide import REASON_HELP, parse_reason
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

GuardrailName = Annotated[str, Parameter(help="Name of the guardrail.")]

ADD_MESSAGES = {
    "added": "Guardrail added.",
    "replaced": "Replaced the guardrail of this name.",
    "unchanged": "The guardrail is active already; nothing changed.",
}
VERDICT_LABELS = {"passed": "passed", "warned": "WARNED", "blocked": "BLOCKED", "not_evaluated": "BLOCKED"}


async def add_guardrail(
    name: GuardrailName,
    expression: Annotated[
        str,
        Parameter(
            help="CEL expression that is true for a violation: \"category == 'money' && size(alternatives) < 2\"."
        ),
    ],
    *,
    message: Annotated[str, Parameter(help="Message that says what to do instead.")],
    severity: Annotated[
        Severity, Parameter(help="Effect of a violation: a warning, or that the decision is not recorded.")
    ] = "block",
    description: Annotated[str, Parameter(help="Purpose of the guardrail.")] = "",
    agent: AgentOption = None,
) -> None:
    """Add or replace a guardrail, a rule for the decisions of this agent.

    The CEL expression is true if a decision VIOLATES the rule. Its variables are description, context, alternatives,
    reasons (their kinds), reason_kinds (without duplicates), tags, category, stakes, confidence, frame, expected,
    reviewed_by, ref, at, look_again_at, and the track record: record.decisions, judged, open, overdue, success_rate,
    brier, category_judged, category_success_rate. A missing text is '', an unknown time or rate is null.

    Example: newton guard add too-many-open "record.overdue > 5" --message "Review some decisions first."
    """
    rule = GuardrailRule(
        name=name, expression=expression, severity=severity, message=message, description=description, source="own"
    )
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        result = await newton.guardrails("cli").add(rule)
    say(ADD_MESSAGES[result])


async def check_guardrails(
    description: Annotated[str, Parameter(help="Decision to check, in one line.")] = "",
    *,
    confidence: Annotated[float, Parameter(help="Probability of success, from 0 to 1.")],
    stakes: Annotated[Stakes, Parameter(help="Impact of the decision.")] = "medium",
    category: Annotated[str, Parameter(help="Category, such as architecture.")] = "process",
    reason: Annotated[tuple[str, ...], Parameter(help=REASON_HELP, negative=())] = (),
    alternative: Annotated[tuple[str, ...], Parameter(help="Alternative considered; repeatable.", negative=())] = (),
    tag: Annotated[tuple[str, ...], Parameter(help="Tag; repeatable.", negative=())] = (),
    context: Annotated[str | None, Parameter(help="Situation in which the decision is made.")] = None,
    frame: Annotated[str | None, Parameter(help="Frame (kind of input) in which the decision is made.")] = None,
    expected: Annotated[str | None, Parameter(help="Expected outcome.")] = None,
    reviewed_by: Annotated[str | None, Parameter(help="Person who reviewed the draft.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Check a draft decision against the guardrails without recording it. The exit status is 1 if one blocks it.

    Example: newton guard check "Drop the old table" --stakes high --confidence 0.4 --reason analysis:unused
    """
    draft = DecisionDraft(
        description=description or "a decision",
        confidence=confidence,
        at=SystemClock().now(),
        context=context,
        alternatives=alternative,
        reasons=tuple(map(parse_reason, reason)),
        tags=tag,
        category=category,
        stakes=stakes,
        frame=frame,
        expected=expected,
        reviewed_by=reviewed_by,
    )
    async with open_agent(load_settings(agent)) as newton:
        _, results = await newton.decisions("cli").check_guardrails(validate_draft(draft))
    blocked = any(result.blocks for result in results)
    if json:
        formatting.print_json({"blocked": blocked, "guardrails": [_result_to_json(result) for result in results]})
    else:
        say("\n".join(map(_format_result, results)) or "No guardrails.")
    return int(blocked)


async def retire_guardrail(name: GuardrailName, *, agent: AgentOption = None) -> None:
    """Disable a guardrail for this agent. A guardrail that comes with Newton can also be disabled.

    Example: newton guard retire one-kind-of-reason
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.guardrails("cli").retire(name)
    say("Guardrail disabled.")


async def restore_guardrail(name: GuardrailName, *, agent: AgentOption = None) -> None:
    """Enable a disabled or replaced guardrail again, as its file defines it.

    Example: newton guard restore one-kind-of-reason
    """
    async with open_agent(load_settings(agent)) as newton:
        changed = await newton.guardrails("cli").restore(name)
    say("Guardrail restored." if changed else "The guardrail is active already; nothing changed.")


def _format_result(result: GuardrailResult) -> str:
    message = f": {result.error or result.rule.message}" if result.verdict != "passed" else ""
    failed = " could not be evaluated" if result.verdict == "not_evaluated" else ""
    return f"{VERDICT_LABELS[result.verdict]:<8}{result.rule.name}{failed}{message}"


def _result_to_json(result: GuardrailResult) -> dict[str, object]:
    return {
        "name": result.rule.name,
        "verdict": result.verdict,
        "blocks": result.blocks,
        "severity": result.rule.severity,
        "message": None if result.verdict == "passed" else result.rule.message,
        "error": result.error,
    }
