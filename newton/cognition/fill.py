"""Which candidates go into the context, at which detail, and why the others do not. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

Detail = Literal["summary", "micro"]
Policy = Literal["stop", "skip", "downgrade"]


class Candidate(NamedTuple):
    """What filling needs to know of a memory."""

    memory_id: UUID
    layer: str
    score: float
    summary_tokens: int
    micro_tokens: int


class Placed(NamedTuple):
    """The verdict on one candidate. `detail` is None when it stays out; `reason` says why it is in or out."""

    memory_id: UUID
    detail: Detail | None
    tokens: int
    reason: str


def fill(
    candidates: Sequence[Candidate],
    *,
    room: int,
    layers: Mapping[str, int],
    headers: Mapping[str, int],
    policy: Policy = "downgrade",
) -> list[Placed]:
    """One verdict for every candidate, best first.

    `room` is what all of them together may cost. Each layer first fills its own share with summaries; what is left
    over then flows to the best of the rest, whatever their layer. A layer's header is paid by its first item.
    """
    ordered = sorted(candidates, key=lambda c: (-c.score, c.memory_id))
    page = _Page(room, layers, headers)
    within = {c.memory_id: placed for c in ordered if policy != "stop" and (placed := page.within_share(c))}
    verdicts: list[Placed] = []
    stopped = False
    for candidate in ordered:
        placed = within.get(candidate.memory_id)
        if placed is None and not stopped:
            placed = page.overflow(candidate, policy)
        if placed is None:
            stopped = policy == "stop"
            placed = Placed(candidate.memory_id, None, 0, "no room left")
        verdicts.append(placed)
    return verdicts


class _Page:
    """What is still free, in all and by layer."""

    def __init__(self, room: int, layers: Mapping[str, int], headers: Mapping[str, int]) -> None:
        self._room, self._shares, self._headers = room, dict(layers), dict(headers)

    def within_share(self, candidate: Candidate) -> Placed | None:
        cost = candidate.summary_tokens + self._headers.get(candidate.layer, 0)
        if cost > self._shares.get(candidate.layer, 0):
            return None
        return self._place(candidate, "summary", candidate.summary_tokens, "fits its layer")

    def overflow(self, candidate: Candidate, policy: Policy) -> Placed | None:
        placed = self._place(candidate, "summary", candidate.summary_tokens, "fits what other layers left")
        if placed is None and policy == "downgrade":
            placed = self._place(candidate, "micro", candidate.micro_tokens, "only its short form fits")
        return placed

    def _place(self, candidate: Candidate, detail: Detail, tokens: int, reason: str) -> Placed | None:
        cost = tokens + self._headers.get(candidate.layer, 0)
        if cost > self._room:
            return None
        self._room -= cost
        self._shares[candidate.layer] = self._shares.get(candidate.layer, 0) - cost
        self._headers[candidate.layer] = 0
        return Placed(candidate.memory_id, detail, tokens, reason)
