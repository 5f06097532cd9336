"""Endpoints of the identity: lines of text that say who the agent is and which instructions always apply.

All changes except proposals need the scope `admin`, because a person must decide about them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import CleanText
from newton.agent.inputs import ProposeIdentityInput
from newton.heart.identity.identity_store import IdentityVersion, TenetRecord
from newton.heart.identity.tenets import IdentityPart, diff_tenets
from newton.memory.memory import Trust
from newton.operations.results import ItemList
from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel, with_example
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.api.path_ids import PathId
from newton.runtime.chat_backend.local import find_proposals
from newton.runtime.chat_backend.view_models import ProposalView
from newton.runtime.tools.views import IdentityResponse, to_identity_response
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/identity", tags=["identity"])

PERSON_ORIGIN = "chat"  # an admin token acts for a person


class AcceptProposalResponse(ResponseModel):
    """The id of the accepted line, and the ids of the lines that it replaced."""

    line_id: UUID
    replaced: list[UUID]


class ProposeIdentityResponse(ResponseModel):
    """The result of a proposal. `is_new` is false if the identity already has the line."""

    is_new: bool


class RejectProposalResponse(ResponseModel):
    line_id: UUID


class AddLineRequest(RequestModel):
    """A line to add to the identity."""

    model_config = with_example(section="instruction", text="Answer in metric units")

    section: IdentityPart
    text: CleanText
    reason: CleanText | None = Field(
        None, description="The reason of the change, stored with the new version of the identity."
    )
    allow_conflict: bool = Field(default=False, description="Add the line even if it contradicts an existing one.")


class ChangeLineRequest(RequestModel):
    """The new text of an identity line."""

    model_config = with_example(text="Answer in metric units, with one decimal")

    text: CleanText
    section: IdentityPart | None = Field(None, description="The section of the identity to move the line to.")
    reason: CleanText | None = Field(
        None, description="The reason of the change, stored with the new version of the identity."
    )


class RollBackRequest(RequestModel):
    """The version of the identity to restore."""

    model_config = with_example(version=3)

    version: int = Field(ge=0, le=1_000_000_000)
    reason: CleanText | None = Field(
        None, description="The reason of the change, stored with the new version of the identity."
    )


class IdentityChangeResponse(ResponseModel):
    """The result of a change. `changed` is false if the identity was already as requested."""

    changed: bool


class RemoveLineResponse(ResponseModel):
    """The id of the removed line."""

    line_id: UUID


class VersionLine(ResponseModel):
    """A line that a version added or removed. `text` is null if it was erased."""

    line_id: UUID
    section: IdentityPart
    text: str | None


class IdentityVersionInfo(ResponseModel):
    """A version of the identity, with the lines added and removed since the version before.

    `restored_version` is the version that a rollback restored, else null.
    """

    version: int
    created_at: datetime
    origin: str
    trust: Trust
    change: str
    restored_version: int | None
    reason: str | None
    added: list[VersionLine]
    removed: list[VersionLine]


@router.get("")
async def get_identity(caller: ReadAccess) -> IdentityResponse:
    """Return the lines of the identity, most important first."""
    return to_identity_response(await caller.newton.identity(ORIGIN).get())


@router.get("/proposals")
async def list_identity_proposals(caller: ReadAccess) -> ItemList[ProposalView]:
    """List the proposed identity lines that wait for a person's approval.

    They are standing instructions found in conversations, or were proposed by a client.
    """
    return ItemList(items=await find_proposals(caller.newton.identity(ORIGIN)))


@router.post("/proposals", status_code=201, response_model=ProposeIdentityResponse)
async def propose_identity_line(body: ProposeIdentityInput, act: WriteAction) -> Response:
    """Propose a line for the identity, which a person then accepts or rejects."""

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


@router.post("/lines", status_code=201, response_model=IdentityChangeResponse)
async def add_identity_line(body: AddLineRequest, act: AdminAction) -> Response:
    """Add a line to the identity."""

    async def work(newton: AgentServices) -> IdentityChangeResponse:
        added = await newton.identity(PERSON_ORIGIN).add(
            body.section, body.text, reason=body.reason, allow_conflict=body.allow_conflict
        )
        return IdentityChangeResponse(changed=added)

    return await act.run_once(work)


@router.patch("/lines/{line_id}", response_model=IdentityChangeResponse)
async def change_identity_line(line_id: PathId, body: ChangeLineRequest, act: AdminAction) -> Response:
    """Change the text of an identity line, or move the line to another section."""

    async def work(newton: AgentServices) -> IdentityChangeResponse:
        service = newton.identity(PERSON_ORIGIN)
        return IdentityChangeResponse(
            changed=await service.change(line_id, body.text, part=body.section, reason=body.reason)
        )

    return await act.run_once(work)


@router.delete("/lines/{line_id}", response_model=RemoveLineResponse)
async def remove_identity_line(
    line_id: PathId,
    act: AdminAction,
    reason: Annotated[
        str | None,
        Query(max_length=500, description="The reason of the change, stored with the new version of the identity."),
    ] = None,
) -> Response:
    """Remove a line from the identity. Earlier versions keep it, so a rollback restores it."""

    async def work(newton: AgentServices) -> RemoveLineResponse:
        tenet = await newton.identity(PERSON_ORIGIN).remove(line_id, reason=reason)
        return RemoveLineResponse(line_id=tenet.tenet_id)

    return await act.run_once(work)


@router.get("/versions")
async def list_identity_versions(caller: AdminAccess) -> ItemList[IdentityVersionInfo]:
    """List the versions of the identity, oldest first, each with the lines that it added and removed."""
    versions, records = await caller.newton.identity(ORIGIN).history()
    lines = {record.tenet_id: record for record in records}
    standings = [(), *(version.standing for version in versions)]
    return ItemList(items=[_to_version(one, before, lines) for before, one in zip(standings, versions, strict=False)])


@router.post("/rollback", response_model=IdentityChangeResponse)
async def roll_back_identity(body: RollBackRequest, act: AdminAction) -> Response:
    """Restore an earlier version of the identity as a new version."""

    async def work(newton: AgentServices) -> IdentityChangeResponse:
        restored = await newton.identity(PERSON_ORIGIN).roll_back(body.version, reason=body.reason)
        return IdentityChangeResponse(changed=restored)

    return await act.run_once(work)


def _to_version(
    version: IdentityVersion, before: Sequence[UUID], lines: Mapping[UUID, TenetRecord]
) -> IdentityVersionInfo:
    diff = diff_tenets(before, version.standing)
    return IdentityVersionInfo.from_source(
        version,
        created_at=version.at,
        restored_version=version.restored,
        added=[_to_line(lines[one]) for one in diff.added],
        removed=[_to_line(lines[one]) for one in diff.removed],
    )


def _to_line(record: TenetRecord) -> VersionLine:
    return VersionLine(line_id=record.tenet_id, section=record.part, text=record.words)
