"""Selection of the memories that fit into a context, each as summary or as the shorter micro form. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple
from uuid import UUID

DetailLevel = Literal["summary", "micro"]
FillPolicy = Literal["stop", "skip", "downgrade"]

FITS_LAYER = "fits the budget of its layer"
FITS_LEFTOVER = "fits into unused tokens of other layers"
FITS_SHORT = "only its short form fits"
FITS_GAP = "fits into the remaining tokens"
NO_ROOM = "no room left"


class FillCandidate(NamedTuple):
    """A memory to place, with its sizes. `heading_tokens` are counted once for all items under one `group_heading`."""

    memory_id: UUID
    layer: str
    score: float
    summary_tokens: int
    micro_tokens: int
    group_heading: str | None = None
    heading_tokens: int = 0


class FillPlacement(NamedTuple):
    """The decision on one candidate: `detail` is its form in the context, None if it is left out."""

    memory_id: UUID
    detail: DetailLevel | None
    tokens: int
    reason: str


class _LayerTurn(NamedTuple):
    """The turn of a candidate in the filling order.

    `shares` is the part of the layer's budget used up to and including this candidate.
    """

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
) -> list[FillPlacement]:
    """Decide for each candidate whether it is included, as summary or micro form; return the placements, best first.

    `max_tokens` limits the total, `layers` is the budget of each layer. Layers take turns in proportion to their
    budgets; when one is used up, the others continue. The order does not depend on `max_tokens`. At the first candidate
    that does not fit, that candidate is shortened or left out, and later ones fill the remaining tokens, as the policy
    allows. The first item of a layer or group is charged with the heading. `sealed_layers` never exceed their own
    budget.
    """
    state = _FillState(max_tokens, policy, sealed_layers)
    verdicts = {turn.candidate.memory_id: state.place(turn) for turn in _order_turns(candidates, layers, header_tokens)}
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
    """State of the filling: the free tokens, and the headings that are already counted."""

    def __init__(self, max_tokens: int, policy: FillPolicy, sealed_layers: Set[str]) -> None:
        self._free_tokens, self._policy, self._sealed_layers = max_tokens, policy, sealed_layers
        self._started_headings: set[tuple[str, str | None]] = set()
        self._is_full = False

    def place(self, turn: _LayerTurn) -> FillPlacement:
        candidate = turn.candidate
        is_over_layer = turn.shares > 1
        if (is_over_layer and candidate.layer in self._sealed_layers) or (self._is_full and self._policy == "stop"):
            return FillPlacement(candidate.memory_id, None, 0, NO_ROOM)
        if self._try_reserve(turn, candidate.summary_tokens):
            reason = FITS_GAP if self._is_full else FITS_LEFTOVER if is_over_layer else FITS_LAYER
            return FillPlacement(candidate.memory_id, "summary", candidate.summary_tokens, reason)
        reason, self._is_full = f"{FITS_GAP}, in short" if self._is_full else FITS_SHORT, True
        if self._policy == "downgrade" and self._try_reserve(turn, candidate.micro_tokens):
            return FillPlacement(candidate.memory_id, "micro", candidate.micro_tokens, reason)
        return FillPlacement(candidate.memory_id, None, 0, NO_ROOM)

    def _try_reserve(self, turn: _LayerTurn, tokens: int) -> bool:
        candidate = turn.candidate
        section, heading = (candidate.layer, None), (candidate.layer, candidate.group_heading)
        cost = tokens + (0 if section in self._started_headings else turn.header_tokens)
        if candidate.group_heading is not None and heading not in self._started_headings:
            cost += candidate.heading_tokens
        if cost > self._free_tokens:
            return False
        self._free_tokens -= cost
        self._started_headings |= {section, heading}
        return True
