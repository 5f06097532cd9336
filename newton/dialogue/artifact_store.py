"""Storage of artifacts (versions of long texts, in chunks): lists, reads of ranges, and ranked searches of lines."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from pgvector import HalfVector

from newton.concurrency import compute
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.artifact_text import CHUNK_LINES, ArtifactChunk, count_lines, hash_text, join_chunks, split_chunks
from newton.ids import new_id
from newton.memory.memory import Trust, WriteContext

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.dialogue", "artifact_store.sql")

ArtifactKind = Literal["output", "paste", "file", "upload", "attachment"]

MAX_UPLOAD_CHARS = 10_000_000  # of one text; `newton.memory.hygiene` allows as many for one message
MAX_SEARCHED_CHUNKS = 24  # whose lines are compared with a query, of all artifacts together
MAX_SIMILAR_LINES = 120  # about a page
CENTRE_HALF_LINES = 20  # lines of an artifact from which half of their mean vector is removed; of more lines, more


@dataclass(frozen=True, slots=True, kw_only=True)
class NewArtifact:
    """A text to store under a name. `text` is None for a binary, of which `sha256` and `byte_count` are stored.

    `position` is the message that contains the text, `source` the tool call that returned or wrote it.
    """

    name: str
    kind: ArtifactKind
    media_type: str
    trust: Trust
    text: str | None
    position: int | None = None
    source: str | None = None
    byte_count: int = 0
    sha256: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactVersion:
    """A version of an artifact. `line_count` is 0 for a binary, of which only size and hash are stored.

    `source` is the tool call that returned or wrote the text, `position` the message that contains it.
    """

    artifact_id: UUID
    name: str
    version: int
    kind: ArtifactKind
    media_type: str
    line_count: int
    byte_count: int
    sha256: str
    source: str | None
    position: int | None
    origin: str
    trust: Trust
    created_at: datetime

    @property
    def is_text(self) -> bool:
        return self.line_count > 0


class LineSpan(NamedTuple):
    """Consecutive lines of an artifact, counted from 1. `found` are the numbers of those that a search found."""

    artifact_id: UUID
    first: int
    last: int
    found: tuple[int, ...] = ()


class LineMatch(NamedTuple):
    """A line with words of a query, the weight of each word, and the sum of the weights; rare words weigh more."""

    artifact_id: UUID
    line: int
    words: Sequence[str]
    weights: Sequence[float]
    total: float


class SimilarLine(NamedTuple):
    """A line whose vector is similar to that of a query.

    `similarity` is the cosine, `contrast` the cosine of both vectors without the part that all lines of the artifact
    share.
    """

    artifact_id: UUID
    line: int
    similarity: float
    contrast: float


async def add(
    tx: Tx, artifacts: Sequence[NewArtifact], *, session_id: UUID, ctx: WriteContext
) -> list[tuple[NewArtifact, int]]:
    """Store artifacts of a session; return each with the number of its version. The caller must hold the session lock.

    A content that equals the latest version of its name is not stored again.
    """
    names = [artifact.name for artifact in artifacts]
    rows = await SQL["find_latest_versions"].fetch_all(tx, agent_id=ctx.agent_id, session_id=session_id, names=names)
    latest = {row["name"]: (row["version"], row["sha256"]) for row in rows}
    result: list[tuple[NewArtifact, int]] = []
    new: list[dict[str, object]] = []
    chunks: list[tuple[UUID, ArtifactChunk]] = []
    for artifact in artifacts:
        version, known_hash = latest.get(artifact.name, (0, b""))
        own_hash = artifact.sha256 if artifact.text is None else hash_text(artifact.text)
        if own_hash != known_hash:
            version, artifact_id = version + 1, new_id()
            own_chunks = await compute(partial(split_chunks, artifact.text or ""), chars=len(artifact.text or ""))
            chunks += [(artifact_id, chunk) for chunk in own_chunks]
            new.append(_to_row(artifact, artifact_id, version, own_hash, line_count=count_lines(own_chunks)))
            latest[artifact.name] = (version, own_hash)
        result.append((artifact, version))
    await SQL["insert_versions"].execute(
        tx, agent_id=ctx.agent_id, session_id=session_id, versions=json.dumps(new), now=ctx.now, origin=ctx.origin
    )
    await SQL["insert_chunks"].execute(
        tx,
        agent_id=ctx.agent_id,
        artifact_ids=[artifact_id for artifact_id, _ in chunks],
        first_lines=[chunk.first_line for _, chunk in chunks],
        line_counts=[chunk.line_count for _, chunk in chunks],
        texts=[chunk.text for _, chunk in chunks],
        endings=[chunk.ending for _, chunk in chunks],
    )
    return result


def _to_row(
    artifact: NewArtifact, artifact_id: UUID, version: int, sha256: bytes, *, line_count: int
) -> dict[str, object]:
    return {
        "artifact_id": str(artifact_id),
        "name": artifact.name,
        "version": version,
        "kind": artifact.kind,
        "media_type": artifact.media_type,
        "line_count": line_count,
        "byte_count": artifact.byte_count if artifact.text is None else len(artifact.text.encode()),
        "sha256": sha256.hex(),
        "source": artifact.source,
        "position": artifact.position,
        "trust": artifact.trust,
    }


async def list_versions(tx: Tx, *, agent_id: UUID, session_id: UUID, name: str | None = None) -> list[ArtifactVersion]:
    """Return the versions stored in a session, of one name or of all, the newest first.

    A branch also has those that its parent sessions had when it began.
    """
    rows = await SQL["list_versions"].fetch_all(tx, agent_id=agent_id, session_id=session_id, name=name)
    return [ArtifactVersion(**row) for row in rows]


async def find_last_session(tx: Tx, *, agent_id: UUID) -> UUID | None:
    """Return the session in which an artifact was stored last; None if there is no artifact."""
    row = await SQL["find_last_session"].fetch_one(tx, agent_id=agent_id)
    return row["session_id"] if row else None


async def read_ranges(tx: Tx, ranges: Sequence[LineSpan], *, agent_id: UUID) -> list[list[str]]:
    """Return the lines of each range. Only the chunks that contain them are read."""
    rows = await SQL["read_ranges"].fetch_all(
        tx,
        agent_id=agent_id,
        artifact_ids=[one.artifact_id for one in ranges],
        chunks_after=[one.first - CHUNK_LINES for one in ranges],
        first_lines=[one.first for one in ranges],
        last_lines=[one.last for one in ranges],
    )
    lines: list[list[str]] = [[] for _ in ranges]
    for row in rows:
        lines[row["place"]] += row["lines"]
    return lines


async def read_text(tx: Tx, artifact_id: UUID, *, agent_id: UUID) -> str:
    """Return the whole text of a version; "" if there is none."""
    rows = await SQL["read_all_chunks"].fetch_all(tx, agent_id=agent_id, artifact_id=artifact_id)
    return join_chunks([ArtifactChunk(*row) for row in rows])


async def search_lines(tx: Tx, artifact_ids: Sequence[UUID], query: str, *, agent_id: UUID) -> list[LineMatch]:
    """Return lines with words of the query, from the chunks of the artifacts that match it best."""
    rows = await SQL["search_lines"].fetch_all(
        tx, agent_id=agent_id, artifact_ids=artifact_ids, query=query, max_chunks=MAX_SEARCHED_CHUNKS
    )
    return [LineMatch(*row) for row in rows]


async def search_vectors(
    tx: Tx, artifact_ids: Sequence[UUID], vector: "Vector", *, model_id: UUID, agent_id: UUID
) -> list[SimilarLine]:
    """Return the lines of the artifacts whose vectors have the highest similarity or contrast, in no order."""
    rows = await SQL["search_vectors"].fetch_all(
        tx,
        agent_id=agent_id,
        artifact_ids=artifact_ids,
        model_id=model_id,
        vector=HalfVector(vector),
        max_rows=MAX_SIMILAR_LINES,
        half_lines=CENTRE_HALF_LINES,
    )
    return [SimilarLine(*row) for row in rows]


async def find_last_request(tx: Tx, *, agent_id: UUID, session_id: UUID, position: int) -> str:
    """Return the beginning of the last message of a user before a position; "" if there is none."""
    row = await SQL["find_last_request"].fetch_one(tx, agent_id=agent_id, session_id=session_id, position=position)
    return row["content"] if row else ""


async def list_without_vectors(
    tx: Tx, *, agent_id: UUID, model_id: UUID, skipped: Sequence[UUID], limit: int
) -> list[tuple[UUID, str]]:
    """Return the ids and media types of versions that have no vector of the model yet, oldest first."""
    rows = await SQL["list_without_vectors"].fetch_all(
        tx, agent_id=agent_id, model_id=model_id, skipped=skipped, max_rows=limit
    )
    return [(row["artifact_id"], row["media_type"]) for row in rows]


async def insert_vectors(
    tx: Tx, artifact_id: UUID, lines: Sequence[int], vectors: "Sequence[Vector]", *, agent_id: UUID, model_id: UUID
) -> None:
    """Store the vectors of lines, unless the version was deleted meanwhile."""
    await SQL["insert_vectors"].execute(
        tx,
        agent_id=agent_id,
        artifact_id=artifact_id,
        model_id=model_id,
        first_lines=lines,
        vectors=[HalfVector(vector) for vector in vectors],
    )


# Lines shown before and after each of the best found lines; of the others, a page has room for three times as many.
CONTEXT_LINES, LINES_WITH_CONTEXT = 1, 8
MAX_SPAN_LINES = 16  # to which ranges are merged; of a word that every line has, the range would be the whole text
NEIGHBOUR_WEIGHT = 0.5  # of a word in the line before or after
RANK_CONSTANT = 10  # of reciprocal rank fusion; small, because the first ranks matter most
MIN_SIMILARITY = (
    0.1  # cosine of a line that is found by its vector; lines of code or of a table are seldom more similar
)

LineKey = tuple[UUID, int]


def rank_lines(matches: Sequence[LineMatch], similar: Sequence[SimilarLine]) -> list[LineKey]:
    """Return the found lines, best first, by reciprocal rank fusion of three rankings: words, similarity, contrast.

    Words count as much as both rankings of vectors together.
    """
    scores = _score_by_words(matches)
    by_similarity = {(one.artifact_id, one.line): one.similarity for one in similar}
    by_contrast = {(one.artifact_id, one.line): one.contrast for one in similar}
    fused: dict[LineKey, float] = defaultdict(float)
    for weight, own, lowest in (
        (1.0, scores, 0.0),
        (0.5, by_similarity, MIN_SIMILARITY),
        (0.5, by_contrast, MIN_SIMILARITY),
    ):
        found = [key for key in own if own[key] >= lowest]
        for rank, key in enumerate(sorted(found, key=lambda key: (-own[key], key))):
            fused[key] += weight / (RANK_CONSTANT + rank)
    return sorted(fused, key=lambda key: (-fused[key], key))


def _score_by_words(matches: Sequence[LineMatch]) -> dict[LineKey, float]:
    """Score lines by the weights of their words; words of the line before and after count in part."""
    words: Mapping[LineKey, dict[str, float]] = {
        (match.artifact_id, match.line): dict(zip(match.words, match.weights, strict=True)) for match in matches
    }
    scores: dict[LineKey, float] = {}
    for (artifact_id, line), own in words.items():
        score = sum(own.values())
        nearby = {**words.get((artifact_id, line - 1), {}), **words.get((artifact_id, line + 1), {})}
        score += NEIGHBOUR_WEIGHT * sum(weight for word, weight in nearby.items() if word not in own)
        scores[artifact_id, line] = score
    return scores


def group_lines(ranked: Iterable[LineKey], line_counts: Mapping[UUID, int]) -> list[LineSpan]:
    """Return ranges of lines around the found lines, the best first.

    Ranges that overlap or adjoin are merged, up to MAX_SPAN_LINES. A found line outside of all of them gets a range of
    its own.
    """
    ranges: list[LineSpan] = []
    for rank, (artifact_id, line) in enumerate(ranked):
        around = CONTEXT_LINES if rank < LINES_WITH_CONTEXT else 0
        new_range = LineSpan(artifact_id, max(line - around, 1), min(line + around, line_counts[artifact_id]), (line,))
        near = [n for n, known_range in enumerate(ranges) if _adjoin(known_range, new_range)]
        for number in near:
            if merged := _merge(ranges[number], new_range):
                ranges[number] = merged
                break
        else:
            ranges.append(new_range._replace(first=line, last=line) if near else new_range)
    return ranges


def _adjoin(one: LineSpan, other: LineSpan) -> bool:
    return one.artifact_id == other.artifact_id and one.first <= other.last + 1 and other.first <= one.last + 1


def _merge(one: LineSpan, other: LineSpan) -> LineSpan | None:
    """Return the union of two adjoining ranges, or None if it is too long and the first lacks the found line."""
    found = tuple(sorted({*one.found, *other.found}))
    first, last = min(one.first, other.first), max(one.last, other.last)
    if last - first < MAX_SPAN_LINES:
        return LineSpan(one.artifact_id, first, last, found)
    return one._replace(found=found) if one.first <= other.found[0] <= one.last else None
