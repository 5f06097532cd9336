"""Operations on guardrails, which are rules that a decision must satisfy."""

from typing import TYPE_CHECKING

from newton.brain.guardrails import GuardrailStatus
from newton.operations.declaration import operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


def _format_guardrail(rule: GuardrailStatus) -> str:
    state = rule.severity if rule.is_active else "RETIRED"
    source = " (own)" if rule.source == "own" else ""
    return f"{state:<8}{rule.name}{source}: {rule.expression}\n        {rule.message}"


@operation(
    "GET /v1/guardrails",
    "reads",
    name="guardrails",
    command="guard list",
    text=_format_guardrail,
    empty="No guardrails.",
)
async def list_guardrails(caller: "OperationCaller") -> ItemList[GuardrailStatus]:
    """List the guardrails (rules checked before a decision is recorded), including the retired ones.

    Each has a CEL expression, which is true for a decision that violates the rule, and a message.

    Example: newton guard list
    """
    return ItemList(items=await caller.guardrails.list_guardrails())
