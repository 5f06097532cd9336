"""The endpoint that stores a document."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.document_inputs import UploadDocumentInput
from newton.agent.services.ingest import ReadDocument
from newton.memory.memory import lowest_trust
from newton.runtime.api.base_models import ORIGIN, ResponseModel, with_example
from newton.runtime.api.idempotency import WriteAction, replace_body
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/documents", tags=["documents"])


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


@router.post("", response_model=UploadDocumentResponse)
async def upload_document(body: UploadDocumentRequest, act: WriteAction) -> Response:
    """Store a document, or replace the passages of one that is stored. The job `embed` computes its vectors.

    It is not stored if a censor blocks its text, unless it is a person's own.
    """
    newton, warnings = act.caller.newton, list[str]()
    trust = newton.scope.trust if body.source == "own" else lowest_trust((newton.scope.trust, body.source))
    scope = newton.scope.at(ORIGIN, trust)

    async def read(newton: AgentServices) -> ReadDocument:
        document = await newton.ingest(ORIGIN).read_upload(
            body.read_bytes(), name=body.name, ref=body.ref, title=body.title, encoding=body.encoding
        )
        speaker = act.caller.speaker if body.source == "own" else "model"
        if warning := await newton.action_gate(ORIGIN).check_write(document.text, by=speaker):
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
