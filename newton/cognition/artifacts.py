"""What the session has come to in short, as a source of its contexts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from newton.cognition.earlier import Lines, Selecting, wanted
from newton.cognition.request import Request
from newton.db.pool import Database
from newton.dialogue.artifacts import Enquiry, near
from newton.errors import ProviderError
from newton.ids import model_id
from newton.memory.ranking import EXACT
from newton.memory.recall import Found, details

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """Those that may go with an input, and the first and last line that each covers."""

    found: Sequence[Found] = ()
    lines: Mapping[UUID, Lines] = field(default_factory=dict[UUID, Lines])


class Once:
    """An embedder that is asked once for a text, however many wait for it, and not for those `known`."""

    def __init__(self, embedder: "Embedder", known: "Mapping[str, Vector]") -> None:
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self._embedder, self._known = embedder, known
        self._asked: dict[tuple[str, ...], asyncio.Future[list[Vector]]] = {}

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        if all(text in self._known for text in texts):
            return [self._known[text] for text in texts]
        given = tuple(texts)
        if given not in self._asked:
            asked = asyncio.ensure_future(self._embedder.embed(texts))
            # whoever waits hears of a failure; nobody may be waiting any more
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._asked[given] = asked
        # one who waits no longer does not take it from the others
        return await asyncio.shield(self._asked[given])

    def leave(self) -> None:
        """Nobody waits any more."""
        for asked in self._asked.values():
            asked.cancel()


def looks(request: Request) -> bool:
    """Whether there is anything to look for: within a session, for an input that says something."""
    return request.session_id is not None and wanted(request.input) and request.filters.admits("artifact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """How artifacts are looked for. `seconds` is how long a vector may take; then words decide."""

    db: Database
    embedder: "Embedder | None"
    seconds: float
    selecting: Selecting

    async def read(self, request: Request, hidden: Sequence[UUID]) -> Artifacts:
        """The artifacts nearest to the input, as they were at the moment that is asked about."""
        assert request.session_id is not None, "artifacts belong to a session"
        enquiry = Enquiry(
            agent_id=request.agent_id,
            session_id=request.session_id,
            text=request.input,
            vector=await self._vector(request.input),
            model_id=model_id(self.embedder.identity) if self.embedder else None,
            moment=request.as_of,
            hidden=hidden,
            most=self.selecting.candidates,
        )
        async with self.db.work(request.agent_id) as tx:
            hits = {one.memory_id: one for one in await near(tx, enquiry)}
            found = await details(tx, list(hits), agent_id=request.agent_id, moment=request.as_of)
        lines = {one.memory_id: (one.first, one.last) for one in hits.values() if one.first is not None}
        return Artifacts(
            found=[f._replace(**_evidence(hits[f.memory_id].similarity, hits[f.memory_id].lexical)) for f in found],
            lines={memory_id: (first, last) for memory_id, (first, last) in lines.items() if last is not None},
        )

    async def _vector(self, text: str) -> "Vector | None":
        if self.embedder is None:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                return (await self.embedder.embed([text]))[0]
        except (ProviderError, TimeoutError):
            return None  # the search of memories tells it


def _evidence(similarity: float, lexical: float) -> dict[str, float]:
    """As exact as a stored context keeps it."""
    cosine, share, relevance = EXACT.unpack(EXACT.pack(similarity, lexical, max(similarity or lexical, 0.0)))
    return {"similarity": cosine, "lexical": share, "relevance": relevance}
