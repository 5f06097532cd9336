"""Commands `newton guard`: guardrails, which are rules checked before a decision is recorded."""

from typing import Annotated

from cyclopts import Parameter

from newton.brain.guardrails import GuardrailRule, Severity
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.cli.printing import say

GuardrailName = Annotated[str, Parameter(help="Name of the guardrail.")]

ADD_MESSAGES = {
    "added": "Guardrail added.",
    "replaced": "Replaced the guardrail of this name.",
    "unchanged": "The guardrail is active already; nothing changed.",
}


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
