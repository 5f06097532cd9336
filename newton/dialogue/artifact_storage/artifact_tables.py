"""Rows of tables that show a value for the first time: a search by meaning compares this value. Pure."""

import csv
from collections.abc import Mapping, Sequence

# Delimiters of the texts whose first line names the columns, by media type.
TABLE_DELIMITERS: Mapping[str, str] = {"text/csv": ",", "text/tab-separated-values": "\t"}
MAX_VALUES = 100  # different values of a column that names kinds or states; a column of names or ids has more
MIN_ROWS_PER_VALUE = 10  # on average


def find_first_values(lines: Sequence[str], *, delimiter: str) -> dict[int, str]:
    """Return the values that a row shows first, by the number of the row's line, from 1; the header is line 1.

    Only columns with few different values count, and only values with a letter. In the vector of a whole row such a
    value hardly shows beside names and addresses.

    >>> rows = [f"{n},paid" for n in range(40)] + ["40,lost in transit"]
    >>> find_first_values(["order,state", *rows], delimiter=",")
    {2: 'paid', 42: 'lost in transit'}
    """
    header, *rows = [_split_row(line, delimiter) for line in lines] or [[]]
    numbered = [(number, row) for number, row in enumerate(rows, 2) if len(row) == len(header)]
    found: dict[int, list[str]] = {}
    for column in range(len(header)):
        first: dict[str, int] = {}
        for number, row in numbered:
            first.setdefault(row[column].strip(), number)
        if len(first) <= min(MAX_VALUES, len(numbered) / MIN_ROWS_PER_VALUE):
            for value, number in first.items():
                if any(character.isalpha() for character in value):
                    found.setdefault(number, []).append(value)
    return {number: ", ".join(found[number]) for number in sorted(found)}


def _split_row(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; a line that is no valid row is one cell."""
    try:
        return next(csv.reader([line], delimiter=delimiter), list[str]())
    except csv.Error:
        return [line]
