"""Endpoints of frames and procedures, which ship with Newton or are files of the operator."""

from fastapi import APIRouter
from fastapi.responses import Response

from newton.agent.inputs import DismissalInput, ProcedureResultInput
from newton.content.frames import Frame
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.tools.views import ProcedureDetail, ProcedureInfo, to_procedure_detail, to_procedure_infos
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1")


class ProcedureOutcomeResponse(ResponseModel):
    """The recorded result of a use of the procedure."""

    name: str
    result: str


class ProcedureChangeResponse(ResponseModel):
    """The name of the procedure. `changed` is false if it was not waiting for approval."""

    name: str
    changed: bool


@router.get("/frames", tags=["frames"])
async def list_frames(caller: ReadAccess) -> ItemList[Frame]:
    """List the frames (kinds of input) with their questions, priorities and token shares."""
    return ItemList(items=list(caller.newton.frames.values()))


@router.get("/procedures", tags=["procedures"])
async def list_procedures(caller: ReadAccess) -> ItemList[ProcedureInfo]:
    """List the procedures with their track records."""
    return ItemList(items=to_procedure_infos(await caller.newton.procedures(ORIGIN).list_procedures()))


@router.get("/procedures/{name}", tags=["procedures"])
async def get_procedure(name: str, caller: ReadAccess) -> ProcedureDetail:
    """Return the goals, steps and details of a procedure."""
    return to_procedure_detail(await caller.newton.procedures(ORIGIN).get(name))


@router.post("/procedures/{name}/approve", tags=["procedures"], response_model=ProcedureChangeResponse)
async def approve_procedure(name: str, act: AdminAction) -> Response:
    """Put a proposed procedure in use."""

    async def work(newton: AgentServices) -> ProcedureChangeResponse:
        return ProcedureChangeResponse(name=name, changed=await newton.procedures(ORIGIN).approve(name))

    return await act.run_once(work)


@router.post("/procedures/{name}/dismiss", tags=["procedures"], response_model=ProcedureChangeResponse)
async def dismiss_procedure(name: str, body: DismissalInput, act: AdminAction) -> Response:
    """Dismiss a proposed procedure: it stays in the list as retired, and is not proposed again."""

    async def work(newton: AgentServices) -> ProcedureChangeResponse:
        changed = await newton.procedures(ORIGIN).dismiss(name, body.reason)
        return ProcedureChangeResponse(name=name, changed=changed)

    return await act.run_once(work)


@router.post(
    "/procedures/{name}/outcomes", status_code=201, tags=["procedures"], response_model=ProcedureOutcomeResponse
)
async def record_procedure_outcome(name: str, body: ProcedureResultInput, act: WriteAction) -> Response:
    """Record whether the last use of a procedure succeeded. If no use is recorded, count this as a use."""

    async def work(newton: AgentServices) -> ProcedureOutcomeResponse:
        await newton.procedures(ORIGIN).record_result(name, body.result)
        return ProcedureOutcomeResponse(name=name, result=body.result)

    return await act.run_once(work)
