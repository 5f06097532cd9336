"""Vectors of the passages of artifacts, which the job `embed` computes. A search in artifacts uses them with words."""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.dialogue import artifact_store
from newton.dialogue.artifact_text import ArtifactPassage, list_lines, select_passages
from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory.vectors import embed_texts, read_active_model

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


async def embed_artifacts(scope: AgentScope, *, limit: int | None = None) -> int:
    """Embed the passages of artifacts (long texts of sessions) that have no vectors yet; return how many artifacts.

    An artifact whose passages the model rejects is tried again in the next call. At most `limit` are embedded; none if
    the configured model is not the active one.
    """
    if scope.embedder is None:
        return 0
    async with scope.transaction() as tx:
        if await read_active_model(tx, agent_id=scope.agent_id) != scope.embedder.identity:
            return 0
    model_id = derive_model_id(scope.embedder.identity)
    done: list[UUID] = []
    skipped: list[UUID] = []
    while limit is None or len(done) < limit:
        async with scope.transaction() as tx:
            waiting = await artifact_store.list_without_vectors(
                tx, agent_id=scope.agent_id, model_id=model_id, skipped=skipped, limit=1
            )
        if not waiting:
            break
        ((artifact_id, media_type),) = waiting
        stored = await _embed_artifact(scope, scope.embedder, artifact_id, media_type, model_id=model_id)
        (done if stored else skipped).append(artifact_id)
    return len(done)


async def has_artifacts_to_embed(scope: AgentScope) -> bool:
    """Return whether an artifact (a long text of a session) has no vectors of the configured model."""
    if scope.embedder is None:
        return False
    model_id = derive_model_id(scope.embedder.identity)
    async with scope.transaction() as tx:
        waiting = await artifact_store.list_without_vectors(
            tx, agent_id=scope.agent_id, model_id=model_id, skipped=(), limit=1
        )
    return bool(waiting)


async def _embed_artifact(
    scope: AgentScope, embedder: "Embedder", artifact_id: UUID, media_type: str, *, model_id: UUID
) -> bool:
    """Embed the passages of one artifact; return False if none was stored."""
    async with scope.transaction() as tx:
        text = await artifact_store.read_text(tx, artifact_id, agent_id=scope.agent_id)
    passages = await asyncio.to_thread(_select, text, media_type)
    try:
        vectors = await embed_texts(embedder, [passage.text for passage in passages])
    except ProviderError:
        return False
    async with scope.transaction() as tx:
        lines = [passage.first_line for passage in passages]
        await artifact_store.insert_vectors(tx, artifact_id, lines, vectors, agent_id=scope.agent_id, model_id=model_id)
    return bool(passages)


def _select(text: str, media_type: str) -> list[ArtifactPassage]:
    return select_passages(list_lines(text), media_type=media_type)
