"""Tools on documents: list and read them, store one, and delete one."""

from collections.abc import Mapping

from newton.agent.document_inputs import DeleteDocumentInput, DocumentsInput, IngestDocumentInput
from newton.agent.loop.tools import ToolResult
from newton.heart.documents import DocumentDetail, DocumentPassage, DocumentSummary
from newton.memory.lookup import short_id
from newton.memory.memory import lowest_trust
from newton.operations.caller import OperationCaller

EMBEDDED_AT_ONCE = 16  # passages, while the caller waits


async def list_documents(caller: OperationCaller, args: DocumentsInput) -> ToolResult:
    """List the documents, or return some passages of one."""
    service = caller.newton.documents(caller.origin)
    if args.document is None:
        return ToolResult({"items": [_describe(one, passages=one.passages) for one in await service.list_documents()]})
    document = await service.get(args.document)
    current = [one for one in document.passages if one.state != "SUPERSEDED"]
    shown = current[args.first : args.first + args.limit]
    return ToolResult(
        {**_describe(document, passages=len(current)), "items": [_describe_passage(one) for one in shown]}
    )


async def ingest_document(caller: OperationCaller, args: IngestDocumentInput) -> ToolResult:
    """Store a document, and embed its first passages. The job `embed` does the rest; until then words find them."""
    trust = caller.trust if args.source == "own" else lowest_trust((caller.trust, args.source))
    service = caller.newton.ingest(caller.origin)
    read = await service.read_upload(args.content.encode(), name=args.name, title=args.title)
    stored = await service.store_upload(read, trust=trust)
    await caller.newton.maintenance(caller.origin).process_pending(EMBEDDED_AT_ONCE, passages=True)
    counts = stored.counts
    return ToolResult(
        {
            "document": stored.ref,
            "format": stored.format,
            "new": counts.new,
            "unchanged": counts.kept,
            "replaced": counts.replaced,
            "redacted": stored.redacted,
        }
    )


async def delete_document(caller: OperationCaller, args: DeleteDocumentInput) -> ToolResult:
    """Return what would be deleted or, if the call confirms it, delete it."""
    service = caller.newton.documents(caller.origin)
    document = await service.get(args.document)
    if args.confirm is None:
        step = "Nothing is deleted yet. Call `delete_document` again with confirm: delete to delete it permanently."
        return ToolResult({**_describe(document, passages=len(document.passages)), "next_step": step})
    _, deleted = await service.delete(document.document_id.hex, reason=args.reason)
    return ToolResult({"document": document.ref, "deleted_memories": len(deleted)})


def _describe(document: DocumentSummary | DocumentDetail, *, passages: int) -> Mapping[str, object]:
    fields = {
        "document_id": short_id(document.document_id),
        "document": document.ref,
        "title": document.title,
        "format": document.format,
        "dated_at": document.dated_at.isoformat() if document.dated_at else None,
        "ingested_at": document.ingested_at.isoformat(),
        "passages": passages,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _describe_passage(passage: DocumentPassage) -> Mapping[str, object]:
    fields = {
        "memory_id": short_id(passage.memory_id),
        "heading": passage.heading,
        "location": passage.location,
        "quarantined": passage.quarantined,
        "text": passage.text,
    }
    return {name: value for name, value in fields.items() if value}
