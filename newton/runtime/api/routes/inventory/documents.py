"""Endpoints of ingested documents."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response

from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, ResponseModel
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.api.path_ids import PathId
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/documents", tags=["documents"])


class DocumentInfo(ResponseModel):
    """An ingested document. `ref` is its path; `passages` is the number of its current passages."""

    document_id: UUID
    ref: str
    title: str
    format: str
    ingested_at: datetime
    passages: int


class PassageInfo(ResponseModel):
    """A passage of a document. Its state is SUPERSEDED if the document no longer contains it."""

    memory_id: UUID
    position: int
    heading: str
    state: str
    quarantined: bool
    text: str


class DocumentResponse(ResponseModel):
    """A document with its passages in order."""

    document_id: UUID
    ref: str
    title: str
    format: str
    ingested_at: datetime
    passages: list[PassageInfo]


class DeleteDocumentResponse(ResponseModel):
    """The id of the deleted document, and the ids of all memories deleted with it."""

    document_id: UUID
    items: list[UUID]


@router.get("")
async def list_documents(caller: ReadAccess) -> ItemList[DocumentInfo]:
    """List the ingested documents, sorted by path."""
    found = await caller.newton.documents(ORIGIN).list_documents()
    return ItemList(items=[DocumentInfo.from_source(one) for one in found])


@router.get("/{document_id}")
async def get_document(document_id: PathId, caller: ReadAccess) -> DocumentResponse:
    """Return a document with all its passages."""
    document = await caller.newton.documents(ORIGIN).get(document_id)
    return DocumentResponse.from_source(document, passages=[PassageInfo.from_source(one) for one in document.passages])


@router.delete("/{document_id}", response_model=DeleteDocumentResponse)
async def delete_document(
    document_id: PathId,
    act: AdminAction,
    *,
    confirm: Annotated[
        Literal["delete"], Query(description="Must be `delete`, because the deletion cannot be undone.")
    ],
    reason: Annotated[
        str,
        Query(
            max_length=500,
            description="The reason of the deletion, which is kept with the ids of the deleted memories.",
        ),
    ] = "requested",
) -> Response:
    """Permanently delete a document with its passages and the memories derived from them."""

    async def work(newton: AgentServices) -> DeleteDocumentResponse:
        document, deleted = await newton.documents(ORIGIN).delete(document_id, reason=reason)
        return DeleteDocumentResponse(document_id=document.document_id, items=deleted)

    return await act.run_once(work)
