"""Routes of the identity. To accept or reject a proposal needs the scope admin, because a person must decide."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response

from newton.agent.inputs import ProposeIdentityInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, ResponseModel
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.api.path_ids import PathId
from newton.runtime.chat_backend.local import find_proposals
from newton.runtime.chat_backend.view_models import ProposalView
from newton.runtime.tools.views import IdentityResponse, to_identity_response
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/identity", tags=["identity"])

PERSON_ORIGIN = "chat"  # an admin token acts for a person


class AcceptProposalResponse(ResponseModel):
    """The accepted identity line, and the lines that it replaced."""

    line_id: UUID
    replaced: list[UUID]


class ProposeIdentityResponse(ResponseModel):
    """`is_new` is false if the identity has the line already."""

    is_new: bool


class RejectProposalResponse(ResponseModel):
    line_id: UUID


@router.get("")
async def get_identity(caller: ReadAccess) -> IdentityResponse:
    """Return the lines of the identity by priority."""
    return to_identity_response(await caller.newton.identity(ORIGIN).get())


@router.get("/proposals")
async def list_identity_proposals(caller: ReadAccess) -> ItemList[ProposalView]:
    """List the proposals: standing instructions found in conversations, which wait for a person's approval."""
    return ItemList(items=await find_proposals(caller.newton.identity(ORIGIN)))


@router.post("/proposals", status_code=201, response_model=ProposeIdentityResponse)
async def propose_identity_line(body: ProposeIdentityInput, act: WriteAction) -> Response:
    """Propose a line for the identity. A person accepts or rejects it."""

    async def work(newton: AgentServices) -> ProposeIdentityResponse:
        return ProposeIdentityResponse(is_new=await newton.identity(ORIGIN).propose(body.section, body.text))

    return await act.run_once(work)


@router.post("/proposals/{line_id}/accept", response_model=AcceptProposalResponse)
async def accept_identity_proposal(line_id: PathId, act: AdminAction) -> Response:
    """Add a proposed line to the identity, and remove the lines that contradict it."""

    async def work(newton: AgentServices) -> AcceptProposalResponse:
        tenet, replaced = await newton.identity(PERSON_ORIGIN).accept(line_id)
        return AcceptProposalResponse(line_id=tenet.tenet_id, replaced=[one.tenet_id for one in replaced])

    return await act.run_once(work)


@router.post("/proposals/{line_id}/reject", response_model=RejectProposalResponse)
async def reject_identity_proposal(line_id: PathId, act: AdminAction) -> Response:
    """Reject a proposed identity line."""

    async def work(newton: AgentServices) -> RejectProposalResponse:
        tenet = await newton.identity(PERSON_ORIGIN).reject(line_id)
        return RejectProposalResponse(line_id=tenet.tenet_id)

    return await act.run_once(work)
