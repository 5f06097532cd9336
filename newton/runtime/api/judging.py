"""How far stated confidence can be trusted, what must hold of a decision, and the frames to look in."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.brain.calibration.narrowing import narrowed
from newton.brain.calibration.plain import plain
from newton.brain.calibration.report import calibration as computed
from newton.brain.guardrails import Listed
from newton.brain.stating import checked_choice
from newton.content.frames import Frame
from newton.runtime.api.caller import Reader
from newton.runtime.api.decisions import Ruled, ToDecide
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer

router = APIRouter(prefix="/v1", tags=["decisions"])
frames_router = APIRouter(prefix="/v1", tags=["context"])


class Guardrail(Answer):
    """A rule on decisions: a CEL expression that is true when a choice breaks it. Only a person changes them."""

    name: str
    in_force: bool
    severity: str
    expression: str
    message: str
    description: str
    source: str


class Checked(Answer):
    """What every guardrail in force says of a choice."""

    blocked: bool
    guardrails: list[Ruled]


@router.get("/calibration")
async def calibration(
    caller: Reader,
    category: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[datetime | None, Query(description="Only decisions made from then on, with a zone.")] = None,
) -> dict[str, Any]:
    """Brier score, reliability, bias, trend and correction of the stated confidence; null where there is too little."""
    judged = await caller.newton.deciding(DOOR).judged()
    start = since.replace(tzinfo=since.tzinfo or UTC) if since else None
    return plain(computed(narrowed(judged, category=category, start=start)))


@router.get("/guardrails")
async def guardrails(caller: Reader) -> list[Guardrail]:
    """The guardrails in force, and those that a person took out of force."""
    return [_guardrail(listed) for listed in await caller.newton.guarding(DOOR).listed()]


@router.post("/guardrails/check")
async def check(asked: ToDecide, caller: Reader) -> Checked:
    """Ask the guardrails about a choice. Nothing is recorded."""
    choice = checked_choice(asked.choice(caller.newton))
    _, rulings = await caller.newton.deciding(DOOR).rulings(choice)
    said = [Ruled(name=one.rule.name, verdict=one.verdict, words=one.words) for one in rulings]
    return Checked(blocked=any(one.blocks for one in rulings), guardrails=said)


@frames_router.get("/frames")
async def frames(caller: Reader) -> list[Frame]:
    """How inputs may be looked at: what each frame asks, what matters in it, and how much room it gives."""
    return list(caller.newton.frames.values())


def _guardrail(listed: Listed) -> Guardrail:
    own = {name: getattr(listed.rule, name) for name in Guardrail.model_fields if name != "in_force"}
    return Guardrail(**own, in_force=listed.in_force)
