"""Encoding of a bundle for storage: its candidates as compressed columns, the rest as JSON. Pure.

The texts of memories are not stored again: a checksum identifies the text among the former texts of the memory.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import NamedTuple
from uuid import UUID

import numpy as np
from pydantic import TypeAdapter

from newton.brain.pack_hooks import HookResult
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.fill import DetailLevel
from newton.cognition.assembly.scored_candidate import LayerUsage
from newton.cognition.bundles.bundle import Bundle, ContextUpdate
from newton.cognition.frames.selection import FrameChoice, FrameEvidence
from newton.cognition.request import NO_OVERRIDES, ContextFilters, ContextOverrides
from newton.cognition.scoring.score import FEATURE_NAMES
from newton.memory.search_types import RetrievedMemory

COMPRESSION_LEVEL = 1  # of zlib: the caller waits for the compression
DETAILS: Sequence[DetailLevel | None] = (None, "summary", "micro", "part", "full")
_COLUMNS: Mapping[str, str] = {  # after the features; the order of the fields of StoredCandidate
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
    "window": "<u2",
}
_MAX_FLOAT32 = float(np.finfo("<f4").max)


class StoredCandidate(NamedTuple):
    """A candidate of a stored bundle.

    `tokens` are its tokens in the context, 0 if left out. `checksum` identifies its micro form and summary. `window` is
    the number, from 1, of the part of a long text that answers best; 0 without one.
    """

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
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleTrace:
    """The JSON part of a stored bundle: everything except its candidates.

    The first `candidate_count` memory ids are candidates, the next `focus_count` are in the section Current Focus. The
    columns contain indexes into `reasons`, `states` and `outcomes`; `features` are the names of the feature columns.
    """

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
    overrides: ContextOverrides = NO_OVERRIDES
    update: ContextUpdate | None = None
    hooks: tuple[HookResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBundle:
    """A bundle as loaded from the database."""

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
        return tuple(candidate for candidate in self.candidates if candidate.detail)

    @property
    def memory_ids(self) -> list[UUID]:
        """Return the ids of the candidates and of the memories in the section Current Focus."""
        return [candidate.memory_id for candidate in (*self.candidates, *self.focus)]


class EncodedTrace(NamedTuple):
    """A bundle encoded for storage: memory ids, compressed columns of candidates, and the trace as JSON."""

    memory_ids: list[UUID]
    candidates: bytes
    trace: bytes


def compute_checksum(micro: str, summary: str) -> int:
    return zlib.crc32(summary.encode(), zlib.crc32(micro.encode()))


def encode_bundle(bundle: Bundle, *, rules_hash: str) -> EncodedTrace:
    """Encode a bundle for storage. `rules_hash` identifies the version of the code."""
    found = [*(c.scored.found for c in bundle.candidates), *bundle.focus]
    reasons = [*(c.reason for c in bundle.candidates), *["shown in Current Focus"] * len(bundle.focus)]
    trace = BundleTrace(
        frame_choice=replace(
            bundle.frame_choice, evidence={name: _round_evidence(e) for name, e in bundle.frame_choice.evidence.items()}
        ),
        frame_edition=bundle.frame_edition,
        rules_hash=rules_hash,
        layers=bundle.layers,
        recent_ids=bundle.recent_ids,
        filters=bundle.filters,
        missing=bundle.missing,
        timings_ms={name: round(ms, 3) for name, ms in bundle.timings_ms.items()},
        # the input has its own database column, and the focus is in the packed columns
        assembly_input=replace(bundle.assembly_input, input="", focus=(), open_decisions=()),
        candidate_count=len(bundle.candidates),
        focus_count=len(bundle.focus),
        features=FEATURE_NAMES,
        reasons=list(dict.fromkeys(reasons)),
        states=list(dict.fromkeys(f.state for f in found)),
        outcomes=list(dict.fromkeys(f.outcome for f in found)),
        overrides=bundle.overrides,
        update=bundle.update,
        hooks=bundle.hooks,
    )
    columns = _pack_columns(bundle, found, [trace.reasons.index(reason) for reason in reasons], trace)
    return EncodedTrace(
        memory_ids=[*(f.memory_id for f in found), *_iter_fixed_memory_ids(bundle)],
        candidates=zlib.compress(columns, COMPRESSION_LEVEL),
        trace=_adapter().dump_json(trace, exclude_unset=True),
    )


def _iter_fixed_memory_ids(bundle: Bundle) -> Iterator[UUID]:
    """Yield the ids of censors, tasks, brief, identity and approvals. Deleting one of these deletes the bundle."""
    censors = bundle.assembly_input.censors
    yield from (*(line.memory_id for line in censors.lines), *censors.omitted)
    yield from sorted(bundle.assembly_input.tasks.task_ids)
    yield from (line.memory_id for line in bundle.assembly_input.brief.lines if line.memory_id)
    yield from (tenet.tenet_id for tenet in (*bundle.identity.shown, *bundle.identity.omitted))
    yield from (one.item_id for one in bundle.assembly_input.approvals)


def decode_trace(trace: str, *, input_text: str) -> BundleTrace:
    """Decode the JSON part of a bundle. Raises ValueError if another version wrote it in a different format."""
    decoded = _adapter().validate_json(trace)
    return replace(decoded, assembly_input=replace(decoded.assembly_input, input=input_text))


def decode_candidates(
    trace: BundleTrace, memory_ids: Sequence[UUID], packed: bytes
) -> tuple[tuple[StoredCandidate, ...], tuple[StoredCandidate, ...]]:
    """Decode the packed columns of a trace.

    Return the candidates, best first, and the memories in the context's section Current Focus. Raises ValueError if the
    columns are damaged.
    """
    count, rest, columns = trace.candidate_count + trace.focus_count, _decompress(packed), list[list[float]]()
    for dtype in ("<f4",) * len(trace.features) + tuple(_COLUMNS.values()):
        column, rest = _read_column(rest, dtype, count)
        columns.append(column)
    if rest:
        raise ValueError("the columns are longer than they should be")
    rows = list(zip(*columns, strict=True))[: len(memory_ids)]
    stored = [_create_stored_candidate(trace, memory_ids[n], row) for n, row in enumerate(rows)]
    return tuple(stored[: trace.candidate_count]), tuple(stored[trace.candidate_count :])


def _read_column(packed: bytes, dtype: str, length: int) -> tuple[list[float], bytes]:
    """Return the values of the first column and the remaining bytes."""
    size = length * np.dtype(dtype).itemsize
    if len(packed) < size:
        raise ValueError("the columns are shorter than they should be")
    return np.frombuffer(packed[:size], dtype).tolist(), packed[size:]


def _create_stored_candidate(trace: BundleTrace, memory_id: UUID, row: tuple[float, ...]) -> StoredCandidate:
    width = len(trace.features)
    detail, reason, state, outcome, quarantined, *sizes = map(int, row[width + 1 :])
    texts = trace.reasons[reason], trace.states[state], trace.outcomes[outcome]
    return StoredCandidate(memory_id, row[:width], row[width], DETAILS[detail], *texts, bool(quarantined), *sizes)


def _pack_columns(
    bundle: Bundle, found: Sequence[RetrievedMemory], reason_indexes: Sequence[int], trace: BundleTrace
) -> bytes:
    """Return the columns of the candidates, and then of the memories in Current Focus, which have no score."""
    candidates, focus = bundle.candidates, [0] * len(bundle.focus)
    table = np.zeros((len(found), len(FEATURE_NAMES)), "<f4")
    if candidates:
        table[: len(candidates)] = [c.scored.features for c in candidates]
    columns: Mapping[str, Sequence[float]] = {
        "score": [min(max(c.score, -_MAX_FLOAT32), _MAX_FLOAT32) for c in candidates] + focus,
        "detail": [DETAILS.index(c.detail) for c in candidates] + focus,
        "reason": reason_indexes,
        "state": [trace.states.index(f.state) for f in found],
        "outcome": [trace.outcomes.index(f.outcome) for f in found],
        "quarantined": [f.quarantined for f in found],
        "tokens": [c.tokens for c in candidates] + focus,
        "micro_tokens": [f.micro_tokens for f in found],
        "summary_tokens": [f.summary_tokens for f in found],
        "words": [compute_checksum(f.micro, f.summary) for f in found],
        "window": [f.window.position + 1 if f.window else 0 for f in found],
    }
    packed = (np.array(columns[name], dtype).tobytes() for name, dtype in _COLUMNS.items())
    return b"".join((np.ascontiguousarray(table.T).tobytes(), *packed))


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
