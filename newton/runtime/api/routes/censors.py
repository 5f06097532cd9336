"""Routes of censors. Only a person adds or relaxes a censor, so these routes need the scope admin."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.inputs import CleanText
from newton.heart.censors import DEFAULT_THRESHOLD, CensorAction, CensorRule, MatchMode
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, RequestModel, ResponseModel
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/censors", tags=["censors"])


class CensorInfo(ResponseModel):
    """A censor with its statistics. A quarantined censor waits for approval."""

    memory_id: UUID
    state: str
    quarantined: bool
    match_mode: MatchMode
    trigger: str
    action: CensorAction
    reason: str
    domain: str | None
    threshold: int
    activations: int
    false_positives: int


class AddCensorRequest(RequestModel):
    """A censor to add. `domain` is a domain of a frame."""

    trigger: CleanText
    reason: CleanText
    match_mode: MatchMode = "phrase"
    action: CensorAction = "warn"
    domain: str | None = None
    threshold: int = DEFAULT_THRESHOLD


class RelaxRequest(RequestModel):
    reason: Annotated[CleanText, Field(description="Why the censor need not block; recorded.")]


class CensorChange(ResponseModel):
    """Whether the request changed anything."""

    changed: bool


@router.get("")
async def list_censors(caller: ReadAccess) -> ItemList[CensorInfo]:
    """List the censors and how often each matched."""
    censors = await caller.newton.censors(ORIGIN).list_censors()
    return ItemList(items=[CensorInfo.from_source(censor) for censor in censors])


@router.post("", response_model=CensorChange)
async def add_censor(body: AddCensorRequest, act: AdminAction) -> Response:
    """Add a censor. A warning is shown to the model; a block stops the turn."""
    rule = CensorRule(**body.model_dump())

    async def work(newton: AgentServices) -> CensorChange:
        return CensorChange(changed=await newton.censors(ORIGIN).add(rule))

    return await act.run_once(work)


@router.post("/{memory_id}/relax", response_model=CensorChange)
async def relax_censor(memory_id: UUID, body: RelaxRequest, act: AdminAction) -> Response:
    """Make a blocking censor a warning. Its earlier matches no longer count towards its threshold."""

    async def work(newton: AgentServices) -> CensorChange:
        return CensorChange(changed=await newton.censors(ORIGIN).relax(memory_id.hex, body.reason))

    return await act.run_once(work)


@router.post("/{memory_id}/false-positive", response_model=CensorChange)
async def report_false_positive(memory_id: UUID, act: AdminAction) -> Response:
    """Report the last match of a censor as a false positive."""

    async def work(newton: AgentServices) -> CensorChange:
        await newton.censors(ORIGIN).report_false_positive(memory_id.hex)
        return CensorChange(changed=True)

    return await act.run_once(work)
