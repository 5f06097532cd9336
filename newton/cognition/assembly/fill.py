"""Selection of the memories that fit into a context, and of the level of detail of each. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple
from uuid import UUID

from newton.cognition.sources.person import ABOUT_LAYER

# `part` is the window of a long text that answers best, `full` the whole of a long text.
DetailLevel = Literal["full", "summary", "part", "micro"]
FillPolicy = Literal["stop", "skip", "downgrade"]

FITS_LAYER = "fits the budget of its layer"
FITS_LEFTOVER = "fits into unused tokens of other layers"
FITS_SHORT = "only its short form fits"
FITS_GAP = "fits into the remaining tokens"
INJECTED = "injected into the session"
GROWN = "the whole text fits"
NO_ROOM = "no room left"
OVER_LIMIT = "no room left among the messages of other sessions"

# A long text with at least this share of the best score of its layer grows to full before weaker candidates enter.
GROWTH_SHARE = 0.75


class FillCandidate(NamedTuple):
    """A memory to place, with its sizes. `heading_tokens` are counted once for all items under one `group_heading`.

    `full_tokens` is set for a text that is longer than its summary. `part_tokens` is set if a part of this text answers
    the input; the candidate then enters with the part instead of the summary. With `is_first` it is placed before all
    others. Those of a `sublayer` also share its budget, if it has one.
    """

    memory_id: UUID
    layer: str
    score: float
    summary_tokens: int
    micro_tokens: int
    group_heading: str | None = None
    heading_tokens: int = 0
    part_tokens: int | None = None
    full_tokens: int | None = None
    is_first: bool = False
    sublayer: str = ""

    @property
    def entry_detail(self) -> DetailLevel:
        return "summary" if self.part_tokens is None else "part"

    @property
    def entry_tokens(self) -> int:
        return self.summary_tokens if self.part_tokens is None else self.part_tokens

    @property
    def growth_tokens(self) -> int:
        """The tokens that the whole text costs more than the form in which it enters; 0 if it cannot grow."""
        return 0 if self.full_tokens is None else max(self.full_tokens - self.entry_tokens, 0)


class FillPlacement(NamedTuple):
    """The decision on one candidate: `detail` is its form in the context, None if it is left out."""

    memory_id: UUID
    detail: DetailLevel | None
    tokens: int
    reason: str


class _LayerTurn(NamedTuple):
    """The turn of a candidate in the filling order.

    `shares` is the part of the layer's budget used up to and including this candidate. If it `grows`, the candidate
    has entered in an earlier turn, and its whole text is placed instead.
    """

    shares: float
    candidate: FillCandidate
    header_tokens: int
    grows: bool = False


def fill(
    candidates: Sequence[FillCandidate],
    *,
    max_tokens: int,
    layers: Mapping[str, int],
    header_tokens: Mapping[str, int],
    policy: FillPolicy = "downgrade",
    sealed_layers: Set[str] = frozenset(),
) -> list[FillPlacement]:
    """Decide for each candidate whether it is included, and in which form; return the placements, best first.

    `max_tokens` limits the total, `layers` is the budget of each layer and sublayer. Layers take turns in proportion to
    their budgets; when one is used up, the others continue. Within a layer, the candidates near the best one enter,
    then grow to their whole texts; then the others enter, and grow. The order does not depend on `max_tokens`. A
    candidate that does not fit is shortened (`downgrade`) or left out (`skip`), and later ones fill the remaining
    tokens; with `stop`, the first one ends the filling. The first item of a layer or group is charged with the heading.
    `sealed_layers` never exceed their own budget, and in them each candidate grows before the next one enters: a
    further candidate changes nothing of those before it.
    """
    state = _FillState(max_tokens, policy, sealed_layers, layers)
    verdicts: dict[UUID, FillPlacement] = {}
    for turn in _order_turns(candidates, layers, header_tokens, sealed_layers):
        memory_id = turn.candidate.memory_id
        verdicts[memory_id] = state.grow(turn, verdicts[memory_id]) if turn.grows else state.place(turn)
    return [verdicts[c.memory_id] for c in sorted(candidates, key=_sort_key)]


def _sort_key(candidate: FillCandidate) -> tuple[float, UUID]:
    return (-candidate.score, candidate.memory_id)


def _order_turns(
    candidates: Sequence[FillCandidate],
    layers: Mapping[str, int],
    header_tokens: Mapping[str, int],
    sealed_layers: Set[str],
) -> list[_LayerTurn]:
    """Return the turns of all candidates: the layer that has used the smallest share of its budget comes next."""
    queues: dict[str, list[FillCandidate]] = {}
    for candidate in sorted(candidates, key=_sort_key):
        queues.setdefault(candidate.layer, []).append(candidate)
    turns = [
        turn
        for layer, queue in queues.items()
        for turn in _queue_layer(
            _order_by_rank(queue) if layer in sealed_layers else _order_growth(queue),
            share=layers.get(layer, 0),
            header_tokens=header_tokens.get(layer, 0),
        )
    ]
    return sorted(turns, key=_turn_key)


def _turn_key(turn: _LayerTurn) -> tuple[bool, bool, float, bool, tuple[float, UUID]]:
    """Return the sort key of a turn: candidates marked `is_first` come first; all of them enter before any grows."""
    is_first = turn.candidate.is_first
    return not is_first, is_first and turn.grows, turn.shares, turn.grows, _sort_key(turn.candidate)


def _queue_layer(
    queue: Iterable[tuple[FillCandidate, bool]], *, share: int, header_tokens: int
) -> Iterator[_LayerTurn]:
    used, headings = header_tokens, set[str]()
    for candidate, grows in queue:
        used += candidate.growth_tokens if grows else candidate.entry_tokens
        if candidate.group_heading is not None and candidate.group_heading not in headings:
            used += candidate.heading_tokens
            headings.add(candidate.group_heading)
        yield _LayerTurn(used / share if share > 0 else math.inf, candidate, header_tokens, grows)


def _order_by_rank(queue: Sequence[FillCandidate]) -> Iterator[tuple[FillCandidate, bool]]:
    """Yield each candidate of a layer as it enters (False) and, if it can grow, again (True)."""
    for candidate in queue:
        yield candidate, False
        if candidate.growth_tokens:
            yield candidate, True


def _order_growth(queue: Sequence[FillCandidate]) -> Iterator[tuple[FillCandidate, bool]]:
    """Yield the candidates of a layer in the order in which they enter (False) and grow to their whole texts (True)."""
    least = GROWTH_SHARE * max((candidate.score for candidate in queue), default=0.0)
    strong = [candidate for candidate in queue if candidate.score >= least]
    for group in (strong, [candidate for candidate in queue if candidate.score < least]):
        yield from ((candidate, False) for candidate in group)
        yield from ((candidate, True) for candidate in group if candidate.growth_tokens)


class _FillState:
    """State of the filling: the free tokens, and the headings that are already counted."""

    def __init__(self, max_tokens: int, policy: FillPolicy, sealed_layers: Set[str], layers: Mapping[str, int]) -> None:
        self._free_tokens, self._policy, self._sealed_layers = max_tokens, policy, sealed_layers
        self._sublayers = dict(layers)
        self._started_headings: set[tuple[str, str | None]] = set()
        self._is_full = False  # a candidate did not fit
        self._has_gap = False  # a candidate or its whole text did not fit; later ones fill what it left

    def place(self, turn: _LayerTurn) -> FillPlacement:
        """Return the placement in the form that fits, and spend its tokens; without room, the candidate is left out."""
        candidate = turn.candidate
        is_over_layer = turn.shares > 1
        if (is_over_layer and candidate.layer in self._sealed_layers) or (self._is_full and self._policy == "stop"):
            return FillPlacement(candidate.memory_id, None, 0, NO_ROOM)
        if self._compute_cost(turn, candidate.entry_tokens) > self._find_free_sublayer(candidate):
            return FillPlacement(candidate.memory_id, None, 0, OVER_LIMIT)
        if self._try_reserve(turn, candidate.entry_tokens):
            is_injected = candidate.is_first and candidate.layer != ABOUT_LAYER
            own = INJECTED if is_injected else FITS_LEFTOVER if is_over_layer else FITS_LAYER
            reason = FITS_GAP if self._has_gap else own
            return FillPlacement(candidate.memory_id, candidate.entry_detail, candidate.entry_tokens, reason)
        reason = f"{FITS_GAP}, in short" if self._has_gap else FITS_SHORT
        self._is_full = self._has_gap = True
        if self._policy == "downgrade" and self._try_reserve(turn, candidate.micro_tokens):
            return FillPlacement(candidate.memory_id, "micro", candidate.micro_tokens, reason)
        return FillPlacement(candidate.memory_id, None, 0, NO_ROOM)

    def grow(self, turn: _LayerTurn, placed: FillPlacement) -> FillPlacement:
        """Return the placement with the whole text if it fits, else unchanged."""
        candidate = turn.candidate
        is_sealed = turn.shares > 1 and candidate.layer in self._sealed_layers
        is_stopped = self._is_full and self._policy == "stop"
        if placed.detail != candidate.entry_detail or candidate.full_tokens is None or is_sealed or is_stopped:
            return placed
        if candidate.growth_tokens > self._find_free_sublayer(candidate):
            return placed
        if candidate.growth_tokens > self._free_tokens:
            self._has_gap = True
            return placed
        self._spend(candidate, candidate.growth_tokens)
        reason = f"{FITS_GAP}, as a whole" if placed.reason.startswith(FITS_GAP) else GROWN
        return FillPlacement(candidate.memory_id, "full", candidate.full_tokens, reason)

    def _find_free_sublayer(self, candidate: FillCandidate) -> float:
        return self._sublayers.get(candidate.sublayer, math.inf)

    def _try_reserve(self, turn: _LayerTurn, tokens: int) -> bool:
        candidate, cost = turn.candidate, self._compute_cost(turn, tokens)
        if cost > self._free_tokens:
            return False
        self._spend(candidate, cost)
        self._started_headings |= {(candidate.layer, None), (candidate.layer, candidate.group_heading)}
        return True

    def _spend(self, candidate: FillCandidate, tokens: int) -> None:
        self._free_tokens -= tokens
        if candidate.sublayer in self._sublayers:
            self._sublayers[candidate.sublayer] -= tokens

    def _compute_cost(self, turn: _LayerTurn, tokens: int) -> int:
        """Return the tokens of a candidate with those of the headings above it that are not counted yet."""
        candidate = turn.candidate
        cost = tokens + (0 if (candidate.layer, None) in self._started_headings else turn.header_tokens)
        is_grouped = candidate.group_heading is not None
        is_new_group = is_grouped and (candidate.layer, candidate.group_heading) not in self._started_headings
        return cost + (candidate.heading_tokens if is_new_group else 0)


def format_verdict(detail: DetailLevel | None, reason: str) -> str:
    """Return whether and in which form a candidate is in the context, with the reason.

    >>> format_verdict("micro", "no room left for more"), format_verdict(None, "no room left")
    ('in, as micro (no room left for more)', 'out (no room left)')
    """
    return f"in, as {detail} ({reason})" if detail else f"out ({reason})"


SESSION_LAYER, DOCUMENT_LAYER = "session", "documents"
