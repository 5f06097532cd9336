"""A bundle as it is stored: what its candidates were, in columns, and what they were placed into. Pure.

The words of a memory stand in the text or with the memory, and not once more here: a checksum tells which of its forms
was looked at.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import NamedTuple
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
    "quarantined": "u1",
    "tokens": "<u4",
    "micro_tokens": "<u4",
    "summary_tokens": "<u4",
    "words": "<u4",
}
_MOST = float(np.finfo("<f4").max)


class Kept(NamedTuple):
    """A memory as a stored bundle has it. `tokens` is what it costs there, `words` the checksum of its two forms."""

    memory_id: UUID
    features: tuple[float, ...]
    score: float
    detail: Detail | None
    reason: str
    state: str
    quarantined: bool
    tokens: int
    micro_tokens: int
    summary_tokens: int
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything about a bundle but its candidates. `candidates` and `focus` say how many of its memories are which,
    `features`, `reasons` and `states` what their columns mean; `rules` is the edition of the code that made it."""

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
class _Places:
    """Words as numbers, each by its first appearance."""

    of: dict[str, int] = field(default_factory=dict[str, int])

    def numbered(self, words: Iterable[str]) -> list[int]:
        return [self.of.setdefault(word, len(self.of)) for word in words]


def written(bundle: Bundle, *, rules: str) -> Written:
    """The stored form. `rules` is the edition of the code that made the bundle."""
    reasons, states = _Places(), _Places()
    columns = _packed(bundle, reasons, states)
    trace = Trace(
        frame=replace(bundle.frame, evidence={name: _short(e) for name, e in bundle.frame.evidence.items()}),
        frame_edition=bundle.frame_edition,
        rules=rules,
        layers=bundle.layers,
        recent=bundle.recent,
        filters=bundle.filters,
        missing=bundle.missing,
        timings_ms={name: round(ms, 3) for name, ms in bundle.timings_ms.items()},
        # the input stands beside it, and what is in focus is in the columns
        setting=replace(bundle.setting, input="", focus=(), open=()),
        candidates=len(bundle.candidates),
        focus=len(bundle.focus),
        features=FEATURES,
        reasons=list(reasons.of),
        states=list(states.of),
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
    yield from (tenet.tenet_id for tenet in (*bundle.identity.shown, *bundle.identity.unshown))


def read_trace(trace: str, *, said: str) -> Trace:
    """Raises ValueError for what another version of Newton has written."""
    read = _adapter().validate_json(trace)
    return replace(read, setting=replace(read.setting, input=said))


def unpacked(trace: Trace, memory_ids: Sequence[UUID], packed: bytes) -> tuple[tuple[Kept, ...], tuple[Kept, ...]]:
    """The candidates, best first, and what stood in focus. Raises ValueError for columns that are not whole."""
    number = trace.candidates + trace.focus
    columns, rest = dict[str, list[float]](), _inflated(packed)
    for name, form in [*((feature, "<f4") for feature in trace.features), *_COLUMNS.items()]:
        size = number * np.dtype(form).itemsize
        columns[name], rest = np.frombuffer(rest[:size], form).tolist(), rest[size:]
    if rest or any(len(column) != number for column in columns.values()):
        raise ValueError("the columns are not as long as they should be")
    features = list(zip(*(columns[name] for name in trace.features), strict=True)) or [()] * number
    plain = zip(*(columns[name] for name in _COLUMNS), strict=True)
    kept = [
        Kept(
            memory_id,
            features=of,
            score=score,
            detail=DETAILS[int(detail)],
            reason=trace.reasons[int(reason)],
            state=trace.states[int(state)],
            quarantined=bool(quarantined),
            tokens=int(tokens),
            micro_tokens=int(micro_tokens),
            summary_tokens=int(summary_tokens),
            words=int(words),
        )
        for memory_id, of, (
            score,
            detail,
            reason,
            state,
            quarantined,
            tokens,
            micro_tokens,
            summary_tokens,
            words,
        ) in zip(memory_ids, features, plain, strict=False)
    ]
    return tuple(kept[: trace.candidates]), tuple(kept[trace.candidates :])


def _packed(bundle: Bundle, reasons: _Places, states: _Places) -> bytes:
    considered, focus = bundle.candidates, [0] * len(bundle.focus)
    found: list[Found] = [*(c.scored.found for c in considered), *bundle.focus]
    table = np.zeros((len(found), len(FEATURES)), "<f4")
    if considered:
        table[: len(considered)] = [c.scored.features for c in considered]
    columns: Mapping[str, Sequence[float]] = {
        "score": [min(max(c.score, -_MOST), _MOST) for c in considered] + focus,
        "detail": [DETAILS.index(c.detail) for c in considered] + focus,
        "reason": reasons.numbered([*(c.reason for c in considered), *("in focus" for _ in focus)]),
        "state": states.numbered(f.state for f in found),
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
