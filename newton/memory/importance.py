"""How much a memory matters: what a person says, or else what its record makes of it. Pure.

People give and see it from 0 to 10; it is kept and computed with in [0, 1].
"""

import math
from collections.abc import Mapping

from newton.errors import InputError

SCALE = 10

_LEAST = 0.1  # 1.0 of 10: what nothing speaks for
_OF_KIND: Mapping[str, float] = {"decision": 0.2, "episode": 0.1}
_OF_STATE: Mapping[str, float] = {"CONFIRMED": 0.1, "CORE": 0.4, "EFFECTIVE": 0.2, "ESCALATED": 0.3}
_OF_OUTCOME: Mapping[str, float] = {"failure": 0.2, "success": 0.1, "partial": 0.1}
_OF_USE = 0.1  # for ten uses, twice that for a hundred
_MOST_OF_USE = 0.2


def share_of(importance: float | None) -> float | None:
    """What a person gives from 0 to 10 as it is kept. Raises InputError when it is not on that scale."""
    if importance is None:
        return None
    if not 0 <= importance <= SCALE:
        raise InputError(f"An importance of {importance:g} is not possible.", hint=f"It runs from 0 to {SCALE}.")
    return importance / SCALE


def derived(kind: str, state: str, outcome: str | None, uses: int) -> float:
    """What follows from what it is, what became of it and how often it was shown.

    >>> derived("fact", "NEW", None, 0), derived("fact", "CORE", None, 0), round(derived("fact", "CORE", None, 9), 2)
    (0.1, 0.5, 0.6)
    """
    used = min(_OF_USE * math.log10(1 + uses), _MOST_OF_USE)
    given = _OF_KIND.get(kind, 0.0) + _OF_STATE.get(state, 0.0) + (_OF_OUTCOME.get(outcome, 0.0) if outcome else 0.0)
    return min(_LEAST + given + used, 1.0)
