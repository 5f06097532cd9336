"""Filling of a context: selects candidates and their detail level. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple
from uuid import UUID

DetailLevel = Literal["summary", "micro"]
FillPolicy = Literal["stop", "skip", "downgrade"]

FITS_LAYER = "fits its layer"
FITS_LEFTOVER = "fits what other layers left"
FITS_SHORT = "only its short form fits"
FITS_GAP = "fits the gap that was left"
NO_ROOM = "no room left"


class FillCandidate(NamedTuple):
    """A memory to place. `group_heading` is the heading above it in its layer, which costs `heading_tokens` once."""

    memory_id: UUID
    layer: str
    score: float
    summary_tokens: int
    micro_tokens: int
    group_heading: str | None = None
    heading_tokens: int = 0


class Placement(NamedTuple):
    """The verdict on one candidate. `detail` is None when it is left out."""

    memory_id: UUID
    detail: DetailLevel | None
    tokens: int
    reason: str


class _LayerTurn(NamedTuple):
    """A candidate's turn. `shares` is the part of its layer's budget used up to and including it."""

    shares: float
    candidate: FillCandidate
    header_tokens: int


def fill(
    candidates: Sequence[FillCandidate],
    *,
    max_tokens: int,
    layers: Mapping[str, int],
    header_tokens: Mapping[str, int],
    policy: FillPolicy = "downgrade",
    sealed_layers: Set[str] = frozenset(),
) -> list[Placement]:
    """Return one placement per candidate, best first.

    `max_tokens` limits the total, `layers` is the budget of each layer. Layers take turns in proportion to their
    budget; when one is exhausted, the others continue. The order does not depend on `max_tokens`, so a larger limit
    includes all that a smaller one included before its first candidate that did not fit. That candidate is shortened or
    left out, and later ones only fill the gap. The first item of a layer or group pays for its header. `sealed_layers`
    take no tokens that others leave.
    """
    page = _FillState(max_tokens, policy, sealed_layers)
    verdicts = {turn.candidate.memory_id: page.place(turn) for turn in _order_turns(candidates, layers, header_tokens)}
    return [verdicts[c.memory_id] for c in sorted(candidates, key=_sort_key)]


def _sort_key(candidate: FillCandidate) -> tuple[float, UUID]:
    return (-candidate.score, candidate.memory_id)


def _order_turns(
    candidates: Sequence[FillCandidate], layers: Mapping[str, int], header_tokens: Mapping[str, int]
) -> list[_LayerTurn]:
    queues: dict[str, list[FillCandidate]] = {}
    for candidate in sorted(candidates, key=_sort_key):
        queues.setdefault(candidate.layer, []).append(candidate)
    turns = [
        turn
        for layer, queue in queues.items()
        for turn in _queue_layer(queue, share=layers.get(layer, 0), header_tokens=header_tokens.get(layer, 0))
    ]
    return sorted(turns, key=lambda turn: (turn.shares, _sort_key(turn.candidate)))


def _queue_layer(queue: Sequence[FillCandidate], *, share: int, header_tokens: int) -> Iterator[_LayerTurn]:
    used, headings = header_tokens, set[str]()
    for candidate in queue:
        used += candidate.summary_tokens
        if candidate.group_heading is not None and candidate.group_heading not in headings:
            used += candidate.heading_tokens
            headings.add(candidate.group_heading)
        yield _LayerTurn(used / share if share > 0 else math.inf, candidate, header_tokens)


class _FillState:
    """The free tokens, and the headings already paid for."""

    def __init__(self, room: int, policy: FillPolicy, sealed: Set[str]) -> None:
        self._free_tokens, self._policy, self._sealed = room, policy, sealed
        self._started_headings: set[tuple[str, str | None]] = set()
        self._is_full = False

    def place(self, turn: _LayerTurn) -> Placement:
        one = turn.candidate
        barred = turn.shares > 1 and one.layer in self._sealed
        if barred or (self._is_full and self._policy == "stop"):
            return Placement(one.memory_id, None, 0, NO_ROOM)
        if self._try_take(turn, one.summary_tokens):
            reason = FITS_GAP if self._is_full else (FITS_LAYER if turn.shares <= 1 else FITS_LEFTOVER)
            return Placement(one.memory_id, "summary", one.summary_tokens, reason)
        first, self._is_full = not self._is_full, True
        if self._policy == "downgrade" and self._try_take(turn, one.micro_tokens):
            return Placement(one.memory_id, "micro", one.micro_tokens, FITS_SHORT if first else f"{FITS_GAP}, in short")
        return Placement(one.memory_id, None, 0, NO_ROOM)

    def _try_take(self, turn: _LayerTurn, tokens: int) -> bool:
        one = turn.candidate
        section, heading = (one.layer, None), (one.layer, one.group_heading)
        cost = tokens + (0 if section in self._started_headings else turn.header_tokens)
        if one.group_heading is not None and heading not in self._started_headings:
            cost += one.heading_tokens
        if cost > self._free_tokens:
            return False
        self._free_tokens -= cost
        self._started_headings |= {section, heading}
        return True
