"""The ingested documents of an agent: list, read and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.heart import documents
from newton.heart.documents import DocumentDetail, DocumentSummary
from newton.memory.hygiene import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentService:
    """The documents of one agent. A document is identified by its id, the end of its id, or its ref."""

    scope: AgentScope

    async def list_documents(self) -> Sequence[DocumentSummary]:
        """Return all documents, sorted by ref."""
        async with self.scope.transaction() as tx:
            return await documents.list_documents(tx, agent_id=self.scope.agent_id)

    async def get(self, document_ref: str) -> DocumentDetail:
        """Return a document with its passages. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            return await documents.read_document(tx, document_ref, agent_id=self.scope.agent_id)

    async def delete(self, document_ref: str, *, reason: str) -> tuple[DocumentDetail, list[UUID]]:
        """Permanently delete a document; return it and the ids of all deleted memories. Raises NotFoundError."""
        async with self.scope.write() as (tx, ctx):
            document = await documents.read_document(tx, document_ref, agent_id=ctx.agent_id)
            deleted = await documents.delete_document(tx, document, reason=clean_text(reason, what="reason"), ctx=ctx)
            payload = {"document_id": str(document.document_id), "forgotten": len(deleted)}
            self.scope.publish("document.deleted", payload)
            return document, deleted
