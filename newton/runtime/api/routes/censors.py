"""Endpoints of censors, which are rules that warn of a text or block it."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import CleanText
from newton.agent.inputs import AddCensorInput
from newton.heart.censors import CensorRule, CensorStage
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, RequestModel, ResponseModel
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.api.path_ids import CensorId
from newton.runtime.tools.views import CensorInfo, to_censor_info
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/censors", tags=["censors"])


class AddCensorResponse(ResponseModel):
    """The result of adding a censor. `is_new` is false if the censor is in force already."""

    is_new: bool
    note: str = Field(description="What the trigger does not find.")


class CensorChangeResponse(ResponseModel):
    """The id of the censor. `changed` is false if the censor was already as requested."""

    censor_id: UUID
    changed: bool = True


class RelaxRequest(RequestModel):
    reason: CleanText = Field(description="Why the censor need not block. The reason is recorded.")


class CensorCheckRequest(RequestModel):
    text: CleanText = Field(examples=["push to main without review"])
    stage: CensorStage = Field(
        "action", description="The kind of text: `input`, `action` (a tool call) or `output` (a reply)."
    )
    counts: bool = Field(
        default=False, description="Count the matches, because somebody is about to do what the text says."
    )


class MatchedCensor(ResponseModel):
    """A censor that matches the text, and whether it blocks or only warns."""

    memory_id: UUID
    blocks: bool
    trigger: str
    reason: str


class CensorCheckResponse(ResponseModel):
    """The matching censors. `unchecked` says why censors that match by meaning were not checked; null if they were."""

    blocked: bool
    matches: list[MatchedCensor]
    unchecked: str | None


@router.get("")
async def list_censors(caller: ReadAccess) -> ItemList[CensorInfo]:
    """List the censors, each with the count of its matches. Retired censors come last."""
    return ItemList(items=[to_censor_info(one) for one in await caller.newton.censors(ORIGIN).list_censors()])


@router.post("", status_code=201, response_model=AddCensorResponse)
async def add_censor(body: AddCensorInput, act: WriteAction) -> Response:
    """Add a censor, or change the action of an existing one from `warn` to `block`."""

    async def work(newton: AgentServices) -> AddCensorResponse:
        rule = CensorRule(**body.model_dump())
        return AddCensorResponse(is_new=await newton.censors(ORIGIN).add(rule), note=rule.describe_limits())

    return await act.run_once(work)


@router.post("/check")
async def check_censors(body: CensorCheckRequest, caller: WriteAccess) -> CensorCheckResponse:
    """Check a text against the censors. The matches count only if the request says so."""
    check = await caller.newton.action_gate(ORIGIN).check(body.text, body.stage, dry_run=not body.counts)
    matches = [MatchedCensor.from_source(one, blocks=one.is_blocking) for one in check.matches]
    return CensorCheckResponse(blocked=check.blocks, matches=matches, unchecked=check.unchecked)


@router.post("/{censor_id}/approve", response_model=CensorChangeResponse)
async def approve_censor(censor_id: CensorId, act: AdminAction) -> Response:
    """Put a proposed censor in force."""

    async def work(newton: AgentServices) -> CensorChangeResponse:
        changed = await newton.censors(ORIGIN).approve(censor_id.hex)
        return CensorChangeResponse(censor_id=censor_id, changed=changed)

    return await act.run_once(work)


@router.post("/{censor_id}/retire", response_model=CensorChangeResponse)
async def retire_censor(censor_id: CensorId, act: AdminAction) -> Response:
    """Retire a censor permanently. It stays in the list."""

    async def work(newton: AgentServices) -> CensorChangeResponse:
        await newton.censors(ORIGIN).retire(censor_id.hex)
        return CensorChangeResponse(censor_id=censor_id)

    return await act.run_once(work)


@router.post("/{censor_id}/false-positive", response_model=CensorChangeResponse)
async def report_false_positive(censor_id: CensorId, act: AdminAction) -> Response:
    """Report the last match of a censor as a false positive. A censor with too many of them is retired."""

    async def work(newton: AgentServices) -> CensorChangeResponse:
        await newton.censors(ORIGIN).report_false_positive(censor_id.hex)
        return CensorChangeResponse(censor_id=censor_id)

    return await act.run_once(work)


@router.post("/{censor_id}/relax", response_model=CensorChangeResponse)
async def relax_censor(censor_id: CensorId, body: RelaxRequest, act: AdminAction) -> Response:
    """Let a blocking censor only warn from now on. Earlier matches no longer count toward its blocking threshold."""

    async def work(newton: AgentServices) -> CensorChangeResponse:
        changed = await newton.censors(ORIGIN).relax(censor_id.hex, body.reason)
        return CensorChangeResponse(censor_id=censor_id, changed=changed)

    return await act.run_once(work)
