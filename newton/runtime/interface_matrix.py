"""The table of Newton's operations and their names in each interface (CLI, HTTP, MCP, ...).

Its rows are derived from the declared operations; those of the others are read from a YAML file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from newton.content.yaml_files import load_yaml
from newton.operations.declaration import Door, Operation, OperationEffect, load_operations

INTERFACES: tuple[Door, ...] = get_args(Door)
# What an operation does to stored rows. Reading may count accesses.
Effect = Literal["reads", "adds", "destroys"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
EFFECTS_BY_DECLARATION: Mapping[OperationEffect, Effect] = {
    "reads": "reads",
    "adds": "adds",
    "changes": "adds",
    "destroys": "destroys",
}
PATH = Path(__file__).with_suffix(".yaml")
ABSENT = "- "  # the beginning of a cell that holds a reason


class AbsenceReason(NamedTuple):
    """The reason, as a sentence, for which an interface does not offer an operation."""

    text: str


class VerbRow(NamedTuple):
    """One operation: its name, meaning and effect, and for each interface the names there or why it is absent.

    `other_effects` maps names of the row to their effect, where it is another than `effect`.
    """

    name: str
    meaning: str
    effect: Effect
    other_effects: Mapping[str, Effect]
    cells: Mapping[str, tuple[str, ...] | AbsenceReason]

    def get_effect(self, name: str) -> Effect:
        """Return the effect of the operation by one of its names."""
        return self.other_effects.get(name, self.effect)

    def names(self, interface: str) -> tuple[str, ...]:
        """Return the names of the operation in an interface; an empty tuple if the interface does not offer it."""
        cell = self.cells[interface]
        return () if isinstance(cell, AbsenceReason) else cell


def load_verbs() -> list[VerbRow]:
    """Return the rows of the table, one for each operation (function of Newton) with its names in each interface.

    Raises KeyError for a row of the file that has no effect or lacks an interface.
    """
    return [*_load_rows(), *map(_to_row, load_operations().values())]


def _to_row(operation: Operation) -> VerbRow:
    """Return the row of a declared operation, whose name is the same in all interfaces but the command line."""
    name = operation.name
    names = {"cli": operation.command or "", "chat": f"/{name.replace('_', '-')}"}
    absent = operation.options.get("absent", {})
    cells = dict[str, tuple[str, ...] | AbsenceReason]()
    for door in INTERFACES:
        cells[door] = AbsenceReason(absent[door]) if door in absent else (names.get(door, name),)
    return VerbRow(name, operation.summary, EFFECTS_BY_DECLARATION[operation.effect], {}, cells)


def _load_rows() -> list[VerbRow]:
    data = cast("Mapping[str, Mapping[str, Mapping[str, str]]]", load_yaml(PATH).value)
    reasons = cast("Mapping[str, str]", data["reasons"])
    return [
        VerbRow(
            name,
            row["meaning"],
            cast("Effect", row["effect"]),
            {one: effect for effect in EFFECTS for one in _parse_names(row.get(effect, ""))},
            {one: _parse_cell(row[one], reasons) for one in INTERFACES},
        )
        for name, row in data["verbs"].items()
    ]


def _parse_cell(cell: str, reasons: Mapping[str, str]) -> tuple[str, ...] | AbsenceReason:
    if cell.startswith(ABSENT):
        reason = cell.removeprefix(ABSENT)
        return AbsenceReason(reasons.get(reason, reason))
    return _parse_names(cell)


def _parse_names(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())
