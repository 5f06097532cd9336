"""Endpoints of guardrails, which are rules on decisions, written as CEL expressions."""

from fastapi import APIRouter

from newton.brain.codec import validate_draft
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel
from newton.runtime.api.routes.decisions import DecisionRequest, GuardrailVerdict

router = APIRouter(prefix="/v1/guardrails", tags=["guardrails"])


class GuardrailCheckResponse(ResponseModel):
    """The results of all active guardrails. `blocked` is true if one of them blocks the decision."""

    blocked: bool
    guardrails: list[GuardrailVerdict]


@router.post("/check")
async def check_guardrails(body: DecisionRequest, caller: ReadAccess) -> GuardrailCheckResponse:
    """Check a decision against the guardrails. Records nothing."""
    draft = validate_draft(body.resolve(caller.newton))
    _, results = await caller.newton.decisions(ORIGIN).check_guardrails(draft)
    verdicts = [GuardrailVerdict.from_source(one, name=one.rule.name) for one in results]
    return GuardrailCheckResponse(blocked=any(one.blocks for one in results), guardrails=verdicts)
