"""How much a memory matters: what a person says, or else what its record makes of it. Pure.

People give and see it from 0 to 10; it is kept and computed with in [0, 1].
"""

import math
from collections.abc import Mapping

from newton.errors import InputError

MAX_IMPORTANCE = 10

_BASE = 0.1  # 1.0 of 10: what nothing speaks for
_KIND_BONUS: Mapping[str, float] = {"decision": 0.2, "episode": 0.1}
_STATE_BONUS: Mapping[str, float] = {"CONFIRMED": 0.1, "CORE": 0.4, "EFFECTIVE": 0.2, "ESCALATED": 0.3}
_OUTCOME_BONUS: Mapping[str, float] = {"failure": 0.2, "success": 0.1, "partial": 0.1}
_USE_BONUS = 0.1  # for ten uses, twice that for a hundred
_MAX_USE_BONUS = 0.2


def normalize_importance(importance: float | None) -> float | None:
    """What a person gives from 0 to 10 as it is kept. Raises InputError when it is not on that scale."""
    if importance is None:
        return None
    if not 0 <= importance <= MAX_IMPORTANCE:
        raise InputError(
            f"An importance of {importance:g} is not possible.", hint=f"It runs from 0 to {MAX_IMPORTANCE}."
        )
    return importance / MAX_IMPORTANCE


def derive_importance(kind: str, state: str, outcome: str | None, uses: int) -> float:
    """What follows from what it is, what became of it and how often it was shown.

    >>> derive_importance("fact", "NEW", None, 0), derive_importance("fact", "CORE", None, 0), round(derive_importance("fact", "CORE", None, 9), 2)
    (0.1, 0.5, 0.6)
    """
    used = min(_USE_BONUS * math.log10(1 + uses), _MAX_USE_BONUS)
    given = (
        _KIND_BONUS.get(kind, 0.0)
        + _STATE_BONUS.get(state, 0.0)
        + (_OUTCOME_BONUS.get(outcome, 0.0) if outcome else 0.0)
    )
    return min(_BASE + given + used, 1.0)
