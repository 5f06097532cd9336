"""How the tokens of one context are split among its layers. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

# Layers in the order in which a context shows them.
FIXED: Mapping[str, int] = {"identity": 500, "censors": 300, "frame": 500, "working": 700}
FLEXIBLE: Mapping[str, int] = {"decisions": 2_000, "facts": 1_500, "procedures": 1_500, "episodes": 1_000}
NOTE: Mapping[str, int] = {"note": 100}  # the calibration note comes out of the flexible part

DEFAULT_TOTAL = sum(FIXED.values()) + sum(FLEXIBLE.values())


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens a layer may use: a ceiling for the fixed ones, a share of what is left for the flexible ones."""

    total: int
    layers: Mapping[str, int]


def allocate(total: int, *, shares: Mapping[str, float] | None = None) -> Budget:
    """Splits `total` tokens. `shares` weighs the flexible layers; without it they keep their usual proportions.

    A smaller total shrinks every layer alike; a larger one goes to the flexible layers alone.

    >>> allocate(8_000).layers["decisions"]
    1966
    >>> allocate(4_000).layers["identity"]
    250
    """
    scale = min(total / DEFAULT_TOTAL, 1.0)
    fixed = {name: int(tokens * scale) for name, tokens in FIXED.items()}
    note = {name: int(tokens * scale) for name, tokens in NOTE.items()}
    flexible = total - sum(fixed.values()) - sum(note.values())
    weights = {name: (shares or FLEXIBLE).get(name, 0.0) for name in FLEXIBLE}
    whole = sum(weights.values()) or 1.0
    split = {name: int(flexible * weight / whole) for name, weight in weights.items()}
    return Budget(total=total, layers={**fixed, **split, **note})
