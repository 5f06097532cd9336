"""The verbs of Newton and their names in each interface, from a YAML file. A test compares it with the interfaces."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from newton.content.yaml_source import load_yaml

INTERFACES = ("cli", "http", "mcp", "client", "chat")
PATH = Path(__file__).with_suffix(".yaml")
ABSENT = "- "  # the beginning of a cell that holds a reason


class AbsenceReason(NamedTuple):
    """The reason why an interface does not have a verb, as a sentence."""

    text: str


class VerbRow(NamedTuple):
    """A verb, its meaning, and its names in each interface, or the reason why it has none there."""

    name: str
    meaning: str
    cells: Mapping[str, tuple[str, ...] | AbsenceReason]

    def names(self, interface: str) -> tuple[str, ...]:
        """Return the names in an interface; none if it does not have the verb."""
        cell = self.cells[interface]
        return () if isinstance(cell, AbsenceReason) else cell


def load_verbs() -> list[VerbRow]:
    """Return all verbs. Raises KeyError for a row without a cell for each interface."""
    data = cast("Mapping[str, Mapping[str, Mapping[str, str]]]", load_yaml(PATH).value)
    reasons = cast("Mapping[str, str]", data["reasons"])
    return [
        VerbRow(name, row["meaning"], {one: _parse_cell(row[one], reasons) for one in INTERFACES})
        for name, row in data["verbs"].items()
    ]


def _parse_cell(cell: str, reasons: Mapping[str, str]) -> tuple[str, ...] | AbsenceReason:
    if cell.startswith(ABSENT):
        reason = cell.removeprefix(ABSENT)
        return AbsenceReason(reasons.get(reason, reason))
    return tuple(name.strip() for name in cell.split(","))
