"""The ingested documents of an agent: list, read and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx
from newton.heart import documents
from newton.heart.documents import DeletionPlan, DocumentDetail, DocumentSummary
from newton.memory.hygiene import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentService:
    """The documents of one agent. A document is identified by its id, the end of its id, or its ref."""

    scope: AgentScope

    async def list_documents(self) -> Sequence[DocumentSummary]:
        """Return all documents, sorted by ref."""
        async with self.scope.transaction() as tx:
            return await documents.list_documents(tx, agent_id=self.scope.agent_id)

    async def get(
        self, document_ref: str, *, first: int = 0, limit: int | None = None, only_current: bool = False
    ) -> DocumentDetail:
        """Return a document with up to `limit` of its passages, from the number `first` on (0 is the first passage).

        With `only_current`, passages that the document no longer contains are left out, and not counted. Raises
        NotFoundError for an unknown document.
        """
        async with self.scope.transaction() as tx:
            document = await documents.read_document(tx, document_ref, agent_id=self.scope.agent_id)
        found = [one for one in document.passages if not only_current or one.state != "SUPERSEDED"]
        shown = found[first : None if limit is None else first + limit]
        return replace(document, count=len(found), passages=shown)

    async def plan_deletion(self, document_ref: str) -> DeletionPlan:
        """Return the document that would be deleted, and the token that confirms it.

        Raises NotFoundError for an unknown document.
        """
        async with self.scope.transaction() as tx:
            _, plan = await self._plan_deletion(tx, document_ref)
        return plan

    async def _plan_deletion(self, tx: Tx, document_ref: str) -> tuple[DocumentDetail, DeletionPlan]:
        agent_id = self.scope.agent_id
        document = await documents.read_document(tx, document_ref, agent_id=agent_id)
        ids = [str(one.memory_id) for one in document.passages]
        token = hash_preview(str(agent_id), "delete", str(document.document_id), *ids)
        plan = DeletionPlan(
            document_id=document.document_id, ref=document.ref, title=document.title, passages=len(ids), token=token
        )
        return document, plan

    async def delete(self, document_ref: str, *, reason: str, token: str) -> tuple[UUID, list[UUID]]:
        """Permanently delete a document; return its id and the ids of all deleted memories.

        Raises NotFoundError for an unknown document, and ConflictError if the token is not that of the present plan.
        """
        async with self.scope.write() as (tx, ctx):
            document, plan = await self._plan_deletion(tx, document_ref)
            verify_preview(token, plan.token)
            deleted = await documents.delete_document(tx, document, reason=clean_text(reason, what="reason"), ctx=ctx)
            payload = {"document_id": str(document.document_id), "forgotten": len(deleted)}
            self.scope.publish("document.deleted", payload)
            return document.document_id, deleted
