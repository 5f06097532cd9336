"""Tables of a reply. A table is printed when it is complete, because its widths depend on all rows."""

import re
from collections.abc import Iterator, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from newton.runtime.cli.markdown.inline_text import parse_inline
from newton.runtime.cli.markdown.text_styles import RICH_STYLES, TextStyle, to_terminal

MIN_CELL_COLUMNS = 8  # if a terminal has fewer for a cell, each row is printed as a list

_CELL = re.compile(r"(?:\\\||`[^`]*`|[^|])*")
_DELIMITER = re.compile(r":?-+:?")
_LINE_BREAK = re.compile(r"\s*<br\s*/?>\s*", re.IGNORECASE)


def split_row(line: str) -> list[str]:
    r"""Split a row of a table into its cells.

    >>> split_row(r"| a | `b|c` | d \| e |")
    ['a', '`b|c`', 'd | e']
    """
    text = line.strip().removeprefix("|").removesuffix("|")
    cells: list[str] = []
    place = 0
    while place <= len(text):
        match = _CELL.match(text, place)
        assert match is not None, "the pattern matches the empty text"
        cells.append(match[0].strip().replace(r"\|", "|"))
        place = match.end() + 1
    return cells


def is_delimiter_row(line: str) -> bool:
    """Return whether a line separates the head of a table from its rows."""
    return all(_DELIMITER.fullmatch(cell) for cell in split_row(line))


def render_table(rows: Sequence[str], columns: int, *, has_colors: bool) -> Iterator[str]:
    """Yield the lines of a table whose second row is the delimiter row, for a terminal of so many columns."""
    head, alignments = split_row(rows[0]), split_row(rows[1])
    body = [(split_row(row) + [""] * len(head))[: len(head)] for row in rows[2:]]
    if len(head) * (MIN_CELL_COLUMNS + 3) > columns:
        yield from _render_records(head, body, has_colors=has_colors)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for cell, alignment in zip(head, alignments, strict=False):
        justify = "center" if re.fullmatch(":-+:", alignment) else "right" if alignment.endswith(":") else "left"
        table.add_column(_render_cell(cell, has_colors=has_colors), justify=justify)
    for row in body:
        table.add_row(*(_render_cell(cell, has_colors=has_colors) for cell in row))
    file = StringIO()
    console = Console(
        file=file, width=columns, force_terminal=True, color_system="standard", no_color=not has_colors, _environ={}
    )
    console.print(table)
    yield from (line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _render_cell(cell: str, *, has_colors: bool) -> Text:
    lines = (parse_inline(line, has_colors=has_colors) for line in _LINE_BREAK.split(cell))
    rendered = (Text.assemble(*((text, _to_rich(style)) for text, style in line)) for line in lines)
    return Text("\n").join(rendered)


def _to_rich(style: TextStyle) -> str:
    return " ".join(name for one, name in RICH_STYLES.items() if one in style)


def _render_records(head: Sequence[str], rows: Sequence[Sequence[str]], *, has_colors: bool) -> Iterator[str]:
    """Yield each row as lines "head: cell", which the terminal breaks."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(head, row, strict=True):
            parts = parse_inline(f"**{name}:** {' '.join(_LINE_BREAK.split(cell))}", has_colors=has_colors)
            yield "".join(to_terminal(text, style, has_colors=has_colors) for text, style in parts)
