"""Command `newton verbs`: the operations of Newton (verbs) and their names in each interface."""

from typing import Annotated

from cyclopts import Parameter

from newton.errors import NotFoundError
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption
from newton.runtime.cli.printing import say
from newton.runtime.interface_matrix import INTERFACES, AbsenceReason, VerbRow, load_verbs


def show_verbs(
    name: Annotated[str | None, Parameter(help="Name of an operation (verb); if omitted, all are listed.")] = None,
    *,
    json: JsonOption = False,
) -> None:
    """List the operations of Newton (verbs). With NAME, show its name in each interface, or why it has none.

    Example: newton verbs forget
    """
    rows = [row for row in load_verbs() if name in (None, row.name)]
    if not rows:
        raise NotFoundError(f"There is no verb {name!r}.", hint="`newton verbs` lists all verbs.")
    if json:
        formatting.print_json([_row_to_json(row) for row in rows])
    elif name is None:
        say("\n".join(f"{row.name:<20}{row.meaning}" for row in rows))
    else:
        cells = rows[0].cells.items()
        say("\n".join([rows[0].meaning, *(f"  {interface:<8}{_format_cell(cell)}" for interface, cell in cells)]))


def _format_cell(cell: tuple[str, ...] | AbsenceReason) -> str:
    return f"- ({cell.text})" if isinstance(cell, AbsenceReason) else ", ".join(cell)


def _row_to_json(row: VerbRow) -> dict[str, object]:
    names = {interface: list(row.names(interface)) for interface in INTERFACES}
    return {"verb": row.name, "meaning": row.meaning, **names}
