"""A bundle as it is stored: what its candidates were, in columns, and what they were placed into. Pure.

The words of a memory stand in the text or with the memory, and not once more here: a checksum tells which of its forms
was looked at.
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

from newton.cognition.assemble import Setting
from newton.cognition.bundle import Bundle, Layer, Update
from newton.cognition.fill import Detail
from newton.cognition.filters import Filters
from newton.cognition.framing import Choice, Evidence
from newton.cognition.score import FEATURES
from newton.memory.recall import Found

FASTEST = 1  # of zlib: a bundle is packed while somebody waits
DETAILS: Sequence[Detail | None] = (None, "summary", "micro")
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
_MOST = float(np.finfo("<f4").max)


class Kept(NamedTuple):
    """A memory as a stored bundle has it. `tokens` is what it costs there, `words` the checksum of its two forms."""

    memory_id: UUID
    features: tuple[float, ...]
    score: float
    detail: Detail | None
    reason: str
    state: str
    outcome: str | None
    quarantined: bool
    tokens: int
    micro_tokens: int
    summary_tokens: int
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything about a bundle but its candidates. `candidates` and `focus` say how many of its memories are which,
    `features`, `reasons`, `states` and `outcomes` what their columns mean; `rules` is the edition of the code that made
    it."""

    frame: Choice
    frame_edition: str
    rules: str
    layers: Mapping[str, Layer]
    recent: frozenset[UUID]
    filters: Filters
    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]
    setting: Setting
    candidates: int
    focus: int
    features: Sequence[str]
    reasons: Sequence[str]
    states: Sequence[str]
    outcomes: Sequence[str | None]
    update: Update | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A bundle as it was read back."""

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
    trace: Trace
    candidates: tuple[Kept, ...]
    focus: tuple[Kept, ...]

    @property
    def items(self) -> tuple[Kept, ...]:
        return tuple(kept for kept in self.candidates if kept.detail)

    @property
    def memory_ids(self) -> list[UUID]:
        """Of all memories whose words it needs."""
        return [kept.memory_id for kept in (*self.candidates, *self.focus)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What is stored of a bundle besides its plain values."""

    memory_ids: list[UUID]
    candidates: bytes
    trace: bytes


def checksum(micro: str, summary: str) -> int:
    return zlib.crc32(summary.encode(), zlib.crc32(micro.encode()))


@dataclass(slots=True)
class _Places(Generic[T]):
    """Words as numbers, each by its first appearance."""

    of: dict[T, int] = field(default_factory=dict[T, int])

    def numbered(self, words: Iterable[T]) -> list[int]:
        return [self.of.setdefault(word, len(self.of)) for word in words]


@dataclass(slots=True)
class _Words:
    """The words that the columns number."""

    reasons: _Places[str] = field(default_factory=_Places[str])
    states: _Places[str] = field(default_factory=_Places[str])
    outcomes: _Places[str | None] = field(default_factory=_Places[str | None])


def written(bundle: Bundle, *, rules: str) -> Written:
    """The stored form. `rules` is the edition of the code that made the bundle."""
    words = _Words()
    columns = _packed(bundle, words)
    trace = Trace(
        frame=replace(bundle.frame, evidence={name: _short(e) for name, e in bundle.frame.evidence.items()}),
        frame_edition=bundle.frame_edition,
        rules=rules,
        layers=bundle.layers,
        recent=frozenset(bundle.recent),
        filters=bundle.filters,
        missing=bundle.missing,
        timings_ms={name: round(ms, 3) for name, ms in bundle.timings_ms.items()},
        # the input stands beside it, and what is in focus is in the columns
        setting=replace(bundle.setting, input="", focus=(), open=()),
        candidates=len(bundle.candidates),
        focus=len(bundle.focus),
        features=FEATURES,
        reasons=list(words.reasons.of),
        states=list(words.states.of),
        outcomes=list(words.outcomes.of),
        update=bundle.update,
    )
    return Written(
        memory_ids=[*(c.memory_id for c in bundle.candidates), *_unasked(bundle)],
        candidates=zlib.compress(columns, FASTEST),
        trace=_adapter().dump_json(trace, exclude_unset=True),
    )


def _unasked(bundle: Bundle) -> Iterator[UUID]:
    """What it holds words of beside its candidates: a bundle goes with any of them."""
    yield from (found.memory_id for found in bundle.focus)
    yield from (constraint.memory_id for constraint in bundle.setting.constraints)
    yield from sorted(bundle.setting.tasks.task_ids)
    yield from (tenet.tenet_id for tenet in (*bundle.identity.shown, *bundle.identity.unshown))


def read_trace(trace: str, *, said: str) -> Trace:
    """Raises ValueError for what another version of Newton has written."""
    read = _adapter().validate_json(trace)
    return replace(read, setting=replace(read.setting, input=said))


def unpacked(trace: Trace, memory_ids: Sequence[UUID], packed: bytes) -> tuple[tuple[Kept, ...], tuple[Kept, ...]]:
    """The candidates, best first, and what stood in focus. Raises ValueError for columns that are not whole."""
    number, rest = trace.candidates + trace.focus, _inflated(packed)
    table, columns = list[list[float]](), dict[str, list[float]]()
    for form in ["<f4"] * len(trace.features):
        column, rest = _column(rest, form, number)
        table.append(column)
    for name, form in _COLUMNS.items():
        columns[name], rest = _column(rest, form, number)
    if rest:
        raise ValueError("the columns are longer than they should be")
    features = list(zip(*table, strict=True)) if table else [()] * number
    number = min(number, len(memory_ids))
    kept = [
        _kept(trace, memory_ids[n], features[n], {name: columns[name][n] for name in _COLUMNS}) for n in range(number)
    ]
    return tuple(kept[: trace.candidates]), tuple(kept[trace.candidates :])


def _column(packed: bytes, form: str, number: int) -> tuple[list[float], bytes]:
    """The next column, and what is behind it."""
    size = number * np.dtype(form).itemsize
    if len(packed) < size:
        raise ValueError("the columns are shorter than they should be")
    return np.frombuffer(packed[:size], form).tolist(), packed[size:]


def _kept(trace: Trace, memory_id: UUID, features: tuple[float, ...], of: Mapping[str, float]) -> Kept:
    return Kept(
        memory_id,
        features=features,
        score=of["score"],
        detail=DETAILS[int(of["detail"])],
        reason=trace.reasons[int(of["reason"])],
        state=trace.states[int(of["state"])],
        outcome=trace.outcomes[int(of["outcome"])],
        quarantined=bool(of["quarantined"]),
        tokens=int(of["tokens"]),
        micro_tokens=int(of["micro_tokens"]),
        summary_tokens=int(of["summary_tokens"]),
        words=int(of["words"]),
    )


def _packed(bundle: Bundle, words: _Words) -> bytes:
    considered, focus = bundle.candidates, [0] * len(bundle.focus)
    found: list[Found] = [*(c.scored.found for c in considered), *bundle.focus]
    table = np.zeros((len(found), len(FEATURES)), "<f4")
    if considered:
        table[: len(considered)] = [c.scored.features for c in considered]
    columns: Mapping[str, Sequence[float]] = {
        "score": [min(max(c.score, -_MOST), _MOST) for c in considered] + focus,
        "detail": [DETAILS.index(c.detail) for c in considered] + focus,
        "reason": words.reasons.numbered([*(c.reason for c in considered), *("in focus" for _ in focus)]),
        "state": words.states.numbered(f.state for f in found),
        "outcome": words.outcomes.numbered(f.outcome for f in found),
        "quarantined": [f.quarantined for f in found],
        "tokens": [c.tokens for c in considered] + focus,
        "micro_tokens": [f.micro_tokens for f in found],
        "summary_tokens": [f.summary_tokens for f in found],
        "words": [checksum(f.micro, f.summary) for f in found],
    }
    plain = b"".join(np.array(columns[name], form).tobytes() for name, form in _COLUMNS.items())
    return np.ascontiguousarray(table.T).tobytes() + plain


def _inflated(packed: bytes) -> bytes:
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"the columns are damaged: {error}") from None


def _short(evidence: Evidence) -> Evidence:
    return replace(evidence, pattern=round(evidence.pattern, 4), example=round(evidence.example, 4))


@cache
def _adapter() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)
