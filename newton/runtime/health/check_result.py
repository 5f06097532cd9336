"""The result of one check of `newton doctor`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """The result of one check: its state, what was found (`detail`), and a remedy or an empty text (`hint`)."""

    state: Literal["ok", "note", "wrong"]
    detail: str
    hint: str = ""
