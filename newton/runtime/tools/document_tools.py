"""The tool that stores a document."""

from newton.agent.document_inputs import IngestDocumentInput
from newton.agent.loop.tools import ToolResult
from newton.memory.memory import lowest_trust
from newton.operations.caller import OperationCaller

EMBEDDED_AT_ONCE = 16  # passages, while the caller waits


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
