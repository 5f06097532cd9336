"""How far stated confidence can be trusted, what must hold of a decision, and the frames to look in."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration as computed
from newton.brain.codec import validate_draft
from newton.brain.guardrail_store import GuardrailStatus
from newton.content.frames import Frame
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.routes.decisions import DecisionRequest, GuardrailVerdict
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import ResponseModel

router = APIRouter(prefix="/v1", tags=["decisions"])
frames_router = APIRouter(prefix="/v1", tags=["context"])


class GuardrailInfo(ResponseModel):
    """A rule on decisions: a CEL expression that is true when a choice breaks it. Only a person changes them."""

    name: str
    in_force: bool
    severity: str
    expression: str
    message: str
    description: str
    source: str


class GuardrailCheckResponse(ResponseModel):
    """What every guardrail in force says of a choice."""

    blocked: bool
    guardrails: list[GuardrailVerdict]


@router.get("/calibration")
async def get_calibration(
    caller: ReadAccess,
    category: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[datetime | None, Query(description="Only decisions made from then on, with a zone.")] = None,
) -> dict[str, Any]:
    """Brier score, reliability, bias, trend and correction of the stated confidence; null where there is too little."""
    judged = await caller.newton.decisions(ORIGIN).list_reviewed_decisions()
    start = since.replace(tzinfo=since.tzinfo or UTC) if since else None
    return to_json(computed(filter_decisions(judged, category=category, since=start)))


@router.get("/guardrails")
async def list_guardrails(caller: ReadAccess) -> list[GuardrailInfo]:
    """The guardrails in force, and those that a person took out of force."""
    return [_to_guardrail_info(listed) for listed in await caller.newton.guardrails(ORIGIN).list_guardrails()]


@router.post("/guardrails/check")
async def check_guardrails(body: DecisionRequest, caller: ReadAccess) -> GuardrailCheckResponse:
    """Ask the guardrails about a choice. Nothing is recorded."""
    choice = validate_draft(body.to_draft(caller.newton))
    _, rulings = await caller.newton.decisions(ORIGIN).check_guardrails(choice)
    said = [GuardrailVerdict(name=one.rule.name, verdict=one.verdict, words=one.message) for one in rulings]
    return GuardrailCheckResponse(blocked=any(one.blocks for one in rulings), guardrails=said)


@frames_router.get("/frames")
async def list_frames(caller: ReadAccess) -> list[Frame]:
    """How inputs may be looked at: what each frame asks, what matters in it, and how much room it gives."""
    return list(caller.newton.frames.values())


def _to_guardrail_info(status: GuardrailStatus) -> GuardrailInfo:
    own = {name: getattr(status.rule, name) for name in GuardrailInfo.model_fields if name != "in_force"}
    return GuardrailInfo(**own, in_force=status.in_force)
