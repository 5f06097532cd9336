"""Stored form of a bundle: its candidates in columns, and the assembly input. Pure.

The text of a memory is not repeated: a checksum identifies its short forms.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
from pydantic import TypeAdapter

from newton.cognition.assembly.assembler import AssemblyInput
from newton.cognition.assembly.fill import DetailLevel
from newton.cognition.assembly.scored_candidate import LayerUsage
from newton.cognition.bundles.bundle import Bundle, ContextUpdate
from newton.cognition.frames.selection import FrameChoice, FrameEvidence
from newton.cognition.request import ContextFilters
from newton.cognition.scoring.score import FEATURE_NAMES
from newton.memory.search_types import RetrievedMemory

COMPRESSION_LEVEL = 1  # of zlib: the caller waits for the compression
DETAILS: Sequence[DetailLevel | None] = (None, "summary", "micro")
_COLUMNS: Mapping[str, str] = {
    "score": "<f4",
    "detail": "u1",
    "reason": "<u2",
    "state": "u1",
    "outcome": "u1",
    "quarantined": "u1",
    "tokens": "<u4",
    "micro_tokens": "<u4",
    "summary_tokens": "<u4",
    "words": "<u4",
}
T = TypeVar("T")
_MAX_FLOAT32 = float(np.finfo("<f4").max)


class StoredCandidate(NamedTuple):
    """A candidate of a stored bundle. `tokens` is its cost in the context, `checksum` that of its short forms."""

    memory_id: UUID
    features: tuple[float, ...]
    score: float
    detail: DetailLevel | None
    reason: str
    state: str
    outcome: str | None
    quarantined: bool
    tokens: int
    micro_tokens: int
    summary_tokens: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleTrace:
    """Everything about a bundle except its candidates. `candidate_count` and `focus_count` divide the list of memories;
    `features`, `reasons`, `states` and `outcomes` decode the columns; `rules_hash` is the code version."""

    frame_choice: FrameChoice
    frame_edition: str
    rules_hash: str
    layers: Mapping[str, LayerUsage]
    recent_ids: frozenset[UUID]
    filters: ContextFilters
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]
    assembly_input: AssemblyInput
    candidate_count: int
    focus_count: int
    features: Sequence[str]
    reasons: Sequence[str]
    states: Sequence[str]
    outcomes: Sequence[str | None]
    update: ContextUpdate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBundle:
    """A bundle loaded from the database."""

    bundle_id: UUID
    session: str | None
    created_at: datetime
    as_of: datetime | None
    input: str
    frame: str
    profile: str
    budget: int
    tokens: int
    text: str
    trace: BundleTrace
    candidates: tuple[StoredCandidate, ...]
    focus: tuple[StoredCandidate, ...]

    @property
    def items(self) -> tuple[StoredCandidate, ...]:
        return tuple(kept for kept in self.candidates if kept.detail)

    @property
    def memory_ids(self) -> list[UUID]:
        """Return the ids of all memories whose texts it needs."""
        return [kept.memory_id for kept in (*self.candidates, *self.focus)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedTrace:
    """The encoded columns of a bundle."""

    memory_ids: list[UUID]
    candidates: bytes
    trace: bytes


def compute_checksum(micro: str, summary: str) -> int:
    return zlib.crc32(summary.encode(), zlib.crc32(micro.encode()))


@dataclass(slots=True)
class _ValueIndex(Generic[T]):
    """Numbers values in order of first appearance."""

    positions: dict[T, int] = field(default_factory=dict[T, int])

    def number_values(self, values: Iterable[T]) -> list[int]:
        return [self.positions.setdefault(word, len(self.positions)) for word in values]


@dataclass(slots=True)
class _ColumnValues:
    """Value indexes of the encoded columns."""

    reasons: _ValueIndex[str] = field(default_factory=_ValueIndex[str])
    states: _ValueIndex[str] = field(default_factory=_ValueIndex[str])
    outcomes: _ValueIndex[str | None] = field(default_factory=_ValueIndex[str | None])


def encode_bundle(bundle: Bundle, *, rules_hash: str) -> EncodedTrace:
    """Encode a bundle for storage."""
    words = _ColumnValues()
    columns = _pack_columns(bundle, words)
    trace = BundleTrace(
        frame_choice=replace(
            bundle.frame_choice, evidence={name: _round_evidence(e) for name, e in bundle.frame_choice.evidence.items()}
        ),
        frame_edition=bundle.frame_edition,
        rules_hash=rules_hash,
        layers=bundle.layers,
        recent_ids=frozenset(bundle.recent_ids),
        filters=bundle.filters,
        missing=bundle.missing,
        timings_ms={name: round(ms, 3) for name, ms in bundle.timings_ms.items()},
        # the input has its own field, and focus is in the columns
        assembly_input=replace(bundle.assembly_input, input="", focus=(), open_decisions=()),
        candidate_count=len(bundle.candidates),
        focus_count=len(bundle.focus),
        features=FEATURE_NAMES,
        reasons=list(words.reasons.positions),
        states=list(words.states.positions),
        outcomes=list(words.outcomes.positions),
        update=bundle.update,
    )
    return EncodedTrace(
        memory_ids=[*(c.memory_id for c in bundle.candidates), *_iter_fixed_memory_ids(bundle)],
        candidates=zlib.compress(columns, COMPRESSION_LEVEL),
        trace=_adapter().dump_json(trace, exclude_unset=True),
    )


def _iter_fixed_memory_ids(bundle: Bundle) -> Iterator[UUID]:
    """Yield the other memories in the context: deleting any of them deletes the bundle."""
    yield from (found.memory_id for found in bundle.focus)
    yield from (constraint.memory_id for constraint in bundle.assembly_input.censor_lines)
    yield from sorted(bundle.assembly_input.tasks.task_ids)
    yield from (tenet.tenet_id for tenet in (*bundle.identity.shown, *bundle.identity.omitted))


def decode_trace(trace: str, *, input_text: str) -> BundleTrace:
    """Decode a trace. Raises ValueError for the format of another version."""
    read = _adapter().validate_json(trace)
    return replace(read, assembly_input=replace(read.assembly_input, input=input_text))


def decode_candidates(
    trace: BundleTrace, memory_ids: Sequence[UUID], packed: bytes
) -> tuple[tuple[StoredCandidate, ...], tuple[StoredCandidate, ...]]:
    """Return the candidates, best first, and the memories in focus. Raises ValueError for damaged columns."""
    number, rest = trace.candidate_count + trace.focus_count, _decompress(packed)
    table, columns = list[list[float]](), dict[str, list[float]]()
    for form in ["<f4"] * len(trace.features):
        column, rest = _read_column(rest, form, number)
        table.append(column)
    for name, form in _COLUMNS.items():
        columns[name], rest = _read_column(rest, form, number)
    if rest:
        raise ValueError("the columns are longer than they should be")
    features = list(zip(*table, strict=True)) if table else [()] * number
    number = min(number, len(memory_ids))
    kept = [
        _create_stored_candidate(trace, memory_ids[n], features[n], {name: columns[name][n] for name in _COLUMNS})
        for n in range(number)
    ]
    return tuple(kept[: trace.candidate_count]), tuple(kept[trace.candidate_count :])


def _read_column(packed: bytes, dtype: str, length: int) -> tuple[list[float], bytes]:
    """Return the next column and the remaining bytes."""
    size = length * np.dtype(dtype).itemsize
    if len(packed) < size:
        raise ValueError("the columns are shorter than they should be")
    return np.frombuffer(packed[:size], dtype).tolist(), packed[size:]


def _create_stored_candidate(
    trace: BundleTrace, memory_id: UUID, features: tuple[float, ...], row: Mapping[str, float]
) -> StoredCandidate:
    return StoredCandidate(
        memory_id,
        features=features,
        score=row["score"],
        detail=DETAILS[int(row["detail"])],
        reason=trace.reasons[int(row["reason"])],
        state=trace.states[int(row["state"])],
        outcome=trace.outcomes[int(row["outcome"])],
        quarantined=bool(row["quarantined"]),
        tokens=int(row["tokens"]),
        micro_tokens=int(row["micro_tokens"]),
        summary_tokens=int(row["summary_tokens"]),
        checksum=int(row["words"]),
    )


def _pack_columns(bundle: Bundle, column_values: _ColumnValues) -> bytes:
    considered, focus = bundle.candidates, [0] * len(bundle.focus)
    found: list[RetrievedMemory] = [*(c.scored.found for c in considered), *bundle.focus]
    table = np.zeros((len(found), len(FEATURE_NAMES)), "<f4")
    if considered:
        table[: len(considered)] = [c.scored.features for c in considered]
    columns: Mapping[str, Sequence[float]] = {
        "score": [min(max(c.score, -_MAX_FLOAT32), _MAX_FLOAT32) for c in considered] + focus,
        "detail": [DETAILS.index(c.detail) for c in considered] + focus,
        "reason": column_values.reasons.number_values([*(c.reason for c in considered), *("in focus" for _ in focus)]),
        "state": column_values.states.number_values(f.state for f in found),
        "outcome": column_values.outcomes.number_values(f.outcome for f in found),
        "quarantined": [f.quarantined for f in found],
        "tokens": [c.tokens for c in considered] + focus,
        "micro_tokens": [f.micro_tokens for f in found],
        "summary_tokens": [f.summary_tokens for f in found],
        "words": [compute_checksum(f.micro, f.summary) for f in found],
    }
    plain = b"".join(np.array(columns[name], form).tobytes() for name, form in _COLUMNS.items())
    return np.ascontiguousarray(table.T).tobytes() + plain


def _decompress(packed: bytes) -> bytes:
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"the columns are damaged: {error}") from None


def _round_evidence(evidence: FrameEvidence) -> FrameEvidence:
    return replace(evidence, pattern=round(evidence.pattern, 4), example=round(evidence.example, 4))


@cache
def _adapter() -> TypeAdapter[BundleTrace]:
    return TypeAdapter(BundleTrace)
