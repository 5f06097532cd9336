"""Parsing of spreadsheets (XLSX, XLS, ODS): one section for each sheet, whose passages begin with its header."""

import io
from collections.abc import Iterator, Sequence
from datetime import datetime

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from newton.content.formats.office_files import open_archive, read_properties
from newton.content.formats.structured_data import build_sections
from newton.content.sections import DocumentSection, LineSpan, ParsedDocument
from newton.errors import InputError

_ZIP = b"PK"


def read(raw: bytes) -> ParsedDocument:
    """Parse the values of all sheets. Formulas are represented by their last results.

    Call it only in a subprocess with limits: a few bytes can state a sheet of billions of cells. Raises InputError if
    the document is broken or encrypted, or unpacks to too much.
    """
    title, modified = "", None
    if raw.startswith(_ZIP):
        with open_archive(raw) as archive:
            title, modified = read_properties(archive)
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(raw))
        sections = [section for name in workbook.sheet_names for section in _read_sheet(workbook, name)]
    except PasswordError:
        raise InputError("it is encrypted.", hint="Save a copy without a password.") from None
    except CalamineError as error:
        raise InputError(f"it is damaged: {error}.", hint="Open it in its program, and save it again.") from None
    return ParsedDocument(title, tuple(sections), modified)


def _read_sheet(workbook: CalamineWorkbook, name: str) -> Iterator[DocumentSection]:
    sheet = workbook.get_sheet_by_name(name)
    first = (sheet.start or (0, 0))[0] + 1
    rows = enumerate(sheet.to_python(skip_empty_area=True), start=first)
    yield from build_sections((_number_row(number, row) for number, row in rows), place=f"sheet {name}", heading=name)


def _number_row(number: int, row: Sequence[object]) -> tuple[LineSpan, Sequence[object]]:
    return (number, number), [_format_cell(cell) for cell in row]


def _format_cell(cell: object) -> str:
    """Return a cell as text; whole numbers have no decimals, and dates no time of midnight.

    >>> _format_cell(3.0), _format_cell(datetime(2026, 3, 1)), _format_cell(True)
    ('3', '2026-03-01', 'True')
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d}" if cell.time().isoformat() == "00:00:00" else f"{cell:%Y-%m-%d %H:%M:%S}"
    return "" if cell is None else str(cell)
