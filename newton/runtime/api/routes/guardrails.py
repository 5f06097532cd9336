"""Routes of guardrails: CEL rules on decisions."""

from fastapi import APIRouter

from newton.brain.codec import validate_draft
from newton.brain.guardrail_store import GuardrailStatus
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.routes.decisions import DecisionRequest, GuardrailVerdict
from newton.runtime.api.schemas import ORIGIN, ItemList, ResponseModel

router = APIRouter(prefix="/v1/guardrails", tags=["guardrails"])


class GuardrailInfo(ResponseModel):
    """A CEL expression that is true when a decision violates the rule. Only a person changes guardrails."""

    name: str
    is_active: bool
    severity: str
    expression: str
    message: str
    description: str
    source: str


class GuardrailCheckResponse(ResponseModel):
    """The result of every active guardrail."""

    blocked: bool
    guardrails: list[GuardrailVerdict]


@router.get("")
async def list_guardrails(caller: ReadAccess) -> ItemList[GuardrailInfo]:
    """List the active and the retired guardrails."""
    listed = await caller.newton.guardrails(ORIGIN).list_guardrails()
    return ItemList(items=[_to_guardrail_info(status) for status in listed])


@router.post("/check")
async def check_guardrails(body: DecisionRequest, caller: ReadAccess) -> GuardrailCheckResponse:
    """Check a decision against the guardrails. Records nothing."""
    draft = validate_draft(body.resolve(caller.newton))
    _, results = await caller.newton.decisions(ORIGIN).check_guardrails(draft)
    verdicts = [GuardrailVerdict(name=one.rule.name, verdict=one.verdict, message=one.message) for one in results]
    return GuardrailCheckResponse(blocked=any(one.blocks for one in results), guardrails=verdicts)


def _to_guardrail_info(status: GuardrailStatus) -> GuardrailInfo:
    own = {name: getattr(status.rule, name) for name in GuardrailInfo.model_fields if name != "is_active"}
    return GuardrailInfo(**own, is_active=status.in_force)
