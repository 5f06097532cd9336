"""Operations on ingested documents, whose text is stored as passages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText
from newton.heart.documents import DeletionPlan, DocumentDetail, DocumentPassage, DocumentSummary
from newton.memory.lookup import short_id
from newton.memory.memory import PERSON_TIERS
from newton.operations.declaration import operation
from newton.operations.fields import PlanToken
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

PASSAGES_FOR_MODELS = 20
DocumentRef = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2_000,
        description="The path or name of the document, its id, or the end of its id.",
        examples=["3f9c2a71"],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedDocument:
    """The id of the deleted document, and the ids of all memories deleted with it."""

    document_id: UUID
    items: list[UUID]


def _format_summary(document: DocumentSummary) -> str:
    dated = f", of {document.dated_at:%Y-%m-%d}" if document.dated_at else ""
    place = "" if document.ref == document.title else f"  {document.ref}"
    counted = f"{document.title} ({pluralize(document.passages, 'passage')}{dated}){place}"
    return f"{short_id(document.document_id)}  {document.ingested_at:%Y-%m-%d}  {counted}"


def _format_detail(document: DocumentDetail) -> str:
    dated = f", of {document.dated_at:%Y-%m-%d %H:%M}" if document.dated_at else ""
    head = f"{document.title}  {short_id(document.document_id)}\n{document.ref}{dated}"
    passages = "".join(map(_format_passage, document.passages))
    return f"{head}, ingested {document.ingested_at:%Y-%m-%d %H:%M}{passages}"


def _format_passage(passage: DocumentPassage) -> str:
    state = "" if passage.state == "ACTIVE" else f"  ({passage.state})"
    state += "  (quarantined)" if passage.quarantined else ""
    place = ", ".join(filter(None, (passage.heading, passage.location)))
    return f"\n\n{short_id(passage.memory_id)}  {place}{state}\n{passage.text}"


def _format_deletion(result: DeletionPlan | DeletedDocument) -> str:
    if isinstance(result, DeletionPlan):
        return f"To be deleted permanently: {result.title} with {pluralize(result.passages, 'passage')}"
    return f"Deleted the document with {pluralize(len(result.items), 'memory', 'memories')}."


@operation(
    "GET /v1/documents",
    "reads",
    name="documents",
    command="documents list",
    text=_format_summary,
    empty="No documents. `newton ingest PATH` ingests some.",
)
async def list_documents(caller: "OperationCaller") -> ItemList[DocumentSummary]:
    """List the ingested documents by path, each with the number of its passages (the parts that search finds).

    Example: newton documents
    """
    return ItemList(items=await caller.documents.list_documents())


@operation(
    "GET /v1/documents/{document_id:path}", "reads", name="document", command="documents show", text=_format_detail
)
async def show_document(
    caller: "OperationCaller",
    document_id: DocumentRef,
    *,
    first: Annotated[int, Field(ge=0, description="The number of the first passage, from 0.")] = 0,
    limit: Annotated[
        int | None,
        Field(ge=1, description=f"Maximum number of passages. Default: all, for a model {PASSAGES_FOR_MODELS}."),
    ] = None,
) -> DocumentDetail:
    """Show a document with its passages in order. A model gets those that the document still has.

    Example: newton documents show boat.md
    """
    is_person = caller.trust in PERSON_TIERS
    limit = limit or (None if is_person else PASSAGES_FOR_MODELS)
    return await caller.documents.get(document_id, first=first, limit=limit, only_current=not is_person)


async def _list_passages(caller: "OperationCaller", document_id: str, **_: object) -> list[str]:
    return [one.memory_id.hex for one in (await caller.documents.get(document_id)).passages]


@operation(
    "DELETE /v1/documents/{document_id:path}",
    "destroys",
    act="delete",
    command="documents delete",
    text=_format_deletion,
    list_targets=_list_passages,
)
async def delete_document(
    caller: "OperationCaller",
    document_id: DocumentRef,
    *,
    reason: Annotated[
        CleanText, Field(max_length=1_000, description="Why the document is deleted. The reason stays stored.")
    ] = "requested",
    token: PlanToken = None,
) -> DeletionPlan | DeletedDocument:
    """Permanently delete a document with its passages and the memories derived from them. The file is kept.

    Without a token, the result is the document that would be deleted, and the token that deletes it.

    Example: newton documents delete boat.md --reason "it is outdated"
    """
    if token is None:
        return await caller.documents.plan_deletion(document_id)
    deleted_id, items = await caller.documents.delete(document_id, reason=reason, token=token)
    return DeletedDocument(document_id=deleted_id, items=items)
