"""Endpoints of ingested documents."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.document_inputs import UploadDocumentInput
from newton.agent.services.ingest import ReadDocument
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction, replace_body
from newton.runtime.api.path_ids import PathId
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/documents", tags=["documents"])


class DocumentInfo(ResponseModel):
    """An ingested document. `ref` is its path; `passages` is the number of its current passages."""

    document_id: UUID
    ref: str
    title: str
    format: str
    dated_at: datetime | None = Field(
        description="When the document was written or last changed; null if that is unknown."
    )
    ingested_at: datetime
    passages: int


class PassageInfo(ResponseModel):
    """A passage of a document. Its state is SUPERSEDED if the document no longer contains it."""

    memory_id: UUID
    position: int
    heading: str
    location: str = Field(description="The position in the document; empty if unknown.", examples=["lines 10-42"])
    state: str
    quarantined: bool
    text: str


class DocumentResponse(ResponseModel):
    """A document with its passages in order."""

    document_id: UUID
    ref: str
    title: str
    format: str
    dated_at: datetime | None
    ingested_at: datetime
    passages: list[PassageInfo]


class UploadDocumentRequest(UploadDocumentInput):
    """A document to store: its content is either `content` or `content_base64`."""

    model_config = with_example(name="boat.md", content="# The boat\n\nThe boat is repaired in May.")


class UploadDocumentResponse(ResponseModel):
    """A stored document with the counts of its new, unchanged and replaced passages.

    `redacted` counts the secrets that were removed from it by kind.
    """

    document_id: UUID
    format: str = Field(examples=["markdown"])
    encoding: str | None = Field(description="The encoding of a text; null for other formats.")
    new: int
    unchanged: int
    replaced: int
    redacted: dict[str, int]
    warning: str | None = Field(
        default=None, description="A warning if the text matches a censor. The document is stored nevertheless."
    )


class DeleteDocumentResponse(ResponseModel):
    """The id of the deleted document, and the ids of all memories deleted with it."""

    document_id: UUID
    items: list[UUID]


@router.get("")
async def list_documents(caller: ReadAccess) -> ItemList[DocumentInfo]:
    """List the ingested documents, sorted by path."""
    found = await caller.newton.documents(ORIGIN).list_documents()
    return ItemList(items=[DocumentInfo.from_source(one) for one in found])


@router.post("", response_model=UploadDocumentResponse)
async def upload_document(body: UploadDocumentRequest, act: WriteAction) -> Response:
    """Store a document, or replace the passages of one that is stored. The job `embed` computes its vectors.

    A document whose `source` is a tool or the web is not stored if a censor blocks its text.
    """
    newton, warnings = act.caller.newton, list[str]()
    scope = newton.scope.at(ORIGIN, None if body.source == "own" else body.source)

    async def read(newton: AgentServices) -> ReadDocument:
        document = await newton.ingest(ORIGIN).read_upload(
            body.read_bytes(), name=body.name, ref=body.ref, title=body.title, encoding=body.encoding
        )
        if warning := await newton.action_gate(ORIGIN).check_write(document.text, trust=scope.trust):
            warnings.append(warning)
        return document

    async def store(newton: AgentServices, document: ReadDocument) -> UploadDocumentResponse:
        stored = await newton.ingest(ORIGIN).store_upload(document, trust=scope.trust)
        counts = stored.counts
        return UploadDocumentResponse.from_source(
            stored, new=counts.new, unchanged=counts.kept, replaced=counts.replaced
        )

    response = await act.run_after(read, store)
    stored = UploadDocumentResponse.model_validate_json(bytes(response.body))
    # the warning is not stored for a repetition of the request: it is text of the user
    return replace_body(response, UploadDocumentResponse.from_source(stored, warning=next(iter(warnings), None)))


@router.get("/{document_id}")
async def get_document(document_id: PathId, caller: ReadAccess) -> DocumentResponse:
    """Return a document with all its passages."""
    document = await caller.newton.documents(ORIGIN).get(document_id)
    return DocumentResponse.from_source(document, passages=[PassageInfo.from_source(one) for one in document.passages])


@router.delete("/{document_id}", response_model=DeleteDocumentResponse)
async def delete_document(
    document_id: PathId,
    act: WriteAction,
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
