"""The page of the client matrix has every client and column, and the locked versions."""

from dataclasses import replace

import pytest

from tests.clients.checks import CHECKS
from tests.clients.matrix import (
    CASES,
    COLUMNS,
    FAILS,
    FOLDER,
    PAGE,
    ClientRow,
    drop_tools,
    list_cells,
    load_rows,
    read_versions,
    render_page,
)

ROWS = load_rows()
TEXT = PAGE.read_text(encoding="utf-8")


def read_results() -> dict[tuple[str, str], bool]:
    """Return what the page says of each cell that runs."""
    lines = [line.strip("|").split(" | ") for line in TEXT.split("\n\n")[2].splitlines()[2:]]
    marks = {line[0].strip().partition("<br>")[0]: dict(zip(COLUMNS, line[1:], strict=True)) for line in lines}
    return {(name, column): FAILS not in marks[name][column] for name, column in list_cells(ROWS)}


def test_the_page_is_what_a_run_writes() -> None:
    assert drop_tools(TEXT) == drop_tools(render_page(ROWS, read_results(), "")), "run scripts/test-clients --write"


def test_a_cell_that_fails_shows_on_the_page() -> None:
    results = dict.fromkeys(list_cells(ROWS), True)
    results[ROWS[0].name, "chat"] = False
    (line,) = [line for line in render_page(ROWS, results, "").splitlines() if line.startswith("| ") and FAILS in line]
    assert line.startswith(f"| {ROWS[0].name}<br>")


def test_the_table_names_every_client_and_column() -> None:
    lines = [line.strip("|").split(" | ") for line in TEXT.split("\n\n")[2].splitlines()]
    assert [cell.strip() for cell in lines[0]] == ["client", *COLUMNS.values()]
    assert [line[0].strip().partition("<br>")[0] for line in lines[2:]] == [row.name for row in ROWS]
    assert {len(line) for line in lines[2:]} == {1 + len(COLUMNS)}


def test_the_page_says_why_a_cell_fails() -> None:
    failed = {cell for cell, passed in read_results().items() if not passed}
    assert failed == {(row.name, column) for row in ROWS for column in row.failures}, "state it in rows.yaml"


def test_the_reason_of_a_failure_is_a_note_of_its_cell() -> None:
    row = replace(ROWS[0], failures={"chat": "The client sends no message."})
    failed, passed = (render_page([row], {(row.name, "chat"): passed}, "") for passed in (False, True))
    assert f"{FAILS} (1)" in failed and "1. The client sends no message." in failed
    assert "The client sends no message." not in passed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_client_is_described_in_full(row: ClientRow) -> None:
    assert (FOLDER / "programs" / row.program).is_file()
    assert set(row.columns) == CHECKS[row.checks].keys() - row.absent.keys()
    assert all(reason.endswith(".") for reason in (*row.absent.values(), *row.notes.values(), *row.failures.values()))
    assert row.errors.keys() <= CASES.keys() and row.errors
    assert {*row.packages, *(f"npm:{name}" for name in row.npm)} <= read_versions().keys()
