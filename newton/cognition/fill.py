"""Which candidates go into the context, at which detail, and why the others do not. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple
from uuid import UUID

Detail = Literal["summary", "micro"]
Policy = Literal["stop", "skip", "downgrade"]

WITHIN = "fits its layer"
BEYOND = "fits what other layers left"
SHORT = "only its short form fits"
GAP = "fits the gap that was left"
FULL = "no room left"


class Candidate(NamedTuple):
    """What filling needs to know of a memory. `under` is the heading below which it stands in its layer, and
    `heading` its tokens, which are not part of the memory's own."""

    memory_id: UUID
    layer: str
    score: float
    summary_tokens: int
    micro_tokens: int
    under: str | None = None
    heading: int = 0


class Placed(NamedTuple):
    """The verdict on one candidate. `detail` is None when it stays out; `reason` says why it is in or out."""

    memory_id: UUID
    detail: Detail | None
    tokens: int
    reason: str


class _Turn(NamedTuple):
    """A candidate's turn: how many of its layer's shares are used up by it and the better ones of its layer."""

    shares: float
    candidate: Candidate
    header: int


def fill(
    candidates: Sequence[Candidate],
    *,
    room: int,
    layers: Mapping[str, int],
    headers: Mapping[str, int],
    policy: Policy = "downgrade",
    sealed: Set[str] = frozenset(),
) -> list[Placed]:
    """One verdict for every candidate, best first.

    `room` is what all of them together may cost, `layers` how it is shared. Layers take turns by their shares, each
    with its best; when one has no more, the others go on. The turns do not depend on the room, so a larger one keeps
    what a smaller one kept, down to the first that does not fit whole. That one is shortened or left out, and what fits
    behind it only fills the gap: a larger room may need the gap for something better. A layer's header is paid by the
    first of it that is in, and so is a heading within it. A layer that is `sealed` takes nothing of what others leave.
    """
    page = _Page(room, policy, sealed)
    verdicts = {turn.candidate.memory_id: page.place(turn) for turn in _turns(candidates, layers, headers)}
    return [verdicts[c.memory_id] for c in sorted(candidates, key=_rank)]


def _rank(candidate: Candidate) -> tuple[float, UUID]:
    return (-candidate.score, candidate.memory_id)


def _turns(candidates: Sequence[Candidate], layers: Mapping[str, int], headers: Mapping[str, int]) -> list[_Turn]:
    queues: dict[str, list[Candidate]] = {}
    for candidate in sorted(candidates, key=_rank):
        queues.setdefault(candidate.layer, []).append(candidate)
    turns = [
        turn
        for layer, queue in queues.items()
        for turn in _queue(queue, share=layers.get(layer, 0), header=headers.get(layer, 0))
    ]
    return sorted(turns, key=lambda turn: (turn.shares, _rank(turn.candidate)))


def _queue(queue: Sequence[Candidate], *, share: int, header: int) -> Iterator[_Turn]:
    used, headings = header, set[str]()
    for candidate in queue:
        used += candidate.summary_tokens
        if candidate.under is not None and candidate.under not in headings:
            used += candidate.heading
            headings.add(candidate.under)
        yield _Turn(used / share if share > 0 else math.inf, candidate, header)


class _Page:
    """What is still free, and what has been met so far."""

    def __init__(self, room: int, policy: Policy, sealed: Set[str]) -> None:
        self._room, self._policy, self._sealed = room, policy, sealed
        self._begun: set[tuple[str, str | None]] = set()
        self._full = False

    def place(self, turn: _Turn) -> Placed:
        one = turn.candidate
        barred = turn.shares > 1 and one.layer in self._sealed
        if barred or (self._full and self._policy == "stop"):
            return Placed(one.memory_id, None, 0, FULL)
        if self._takes(turn, one.summary_tokens):
            reason = GAP if self._full else (WITHIN if turn.shares <= 1 else BEYOND)
            return Placed(one.memory_id, "summary", one.summary_tokens, reason)
        first, self._full = not self._full, True
        if self._policy == "downgrade" and self._takes(turn, one.micro_tokens):
            return Placed(one.memory_id, "micro", one.micro_tokens, SHORT if first else f"{GAP}, in short")
        return Placed(one.memory_id, None, 0, FULL)

    def _takes(self, turn: _Turn, tokens: int) -> bool:
        one = turn.candidate
        section, heading = (one.layer, None), (one.layer, one.under)
        cost = tokens + (0 if section in self._begun else turn.header)
        if one.under is not None and heading not in self._begun:
            cost += one.heading
        if cost > self._room:
            return False
        self._room -= cost
        self._begun |= {section, heading}
        return True
