"""The importance of a memory: set by a person, or derived from its kind, state, outcome and use count. Pure.

Interfaces show it from 0 to 10; it is stored from 0 to 1.
"""

import math
from collections.abc import Mapping

from newton.errors import InputError

MAX_IMPORTANCE = 10

_BASE = 0.1  # 1.0 on the scale of 10
_KIND_BONUS: Mapping[str, float] = {"decision": 0.2, "episode": 0.1}
_STATE_BONUS: Mapping[str, float] = {"CONFIRMED": 0.1, "CORE": 0.4, "EFFECTIVE": 0.2, "ESCALATED": 0.3}
_OUTCOME_BONUS: Mapping[str, float] = {"failure": 0.2, "success": 0.1, "partial": 0.1}
_USE_BONUS = 0.1  # for ten uses, twice that for a hundred
_MAX_USE_BONUS = 0.2


def normalize_importance(importance: float | None) -> float | None:
    """Convert an importance from 0..10 to [0, 1]; None stays None. Raises InputError if it is out of range."""
    if importance is None:
        return None
    if not 0 <= importance <= MAX_IMPORTANCE:
        hint = f"Give an importance from 0 to {MAX_IMPORTANCE}."
        raise InputError(f"The importance {importance:g} is out of range.", hint=hint)
    return importance / MAX_IMPORTANCE


def derive_importance(kind: str, state: str, outcome: str | None, uses: int) -> float:
    """Return the importance, in [0, 1], that follows from kind, state, outcome and use count.

    >>> [round(derive_importance("fact", state, None, n), 2) for state, n in (("NEW", 0), ("CORE", 0), ("CORE", 9))]
    [0.1, 0.5, 0.6]
    """
    bonus = _KIND_BONUS.get(kind, 0.0) + _STATE_BONUS.get(state, 0.0) + _OUTCOME_BONUS.get(outcome or "", 0.0)
    return min(_BASE + bonus + min(_USE_BONUS * math.log10(1 + uses), _MAX_USE_BONUS), 1.0)
