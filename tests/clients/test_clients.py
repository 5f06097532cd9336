"""Every cell of the client matrix: a real client, a daemon, and a strict model server behind it."""

import os

import pytest

from tests.clients.checks import CHECKS, CellOutcome
from tests.clients.conftest import ClientBench, node_is_ready, read_tools
from tests.clients.matrix import PAGE, ClientRow, drop_tools, list_cells, load_rows, render_page

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
ROWS = load_rows()
CELLS = [pytest.param(row, column, id=f"{row.name}-{column}") for row in ROWS for column in row.columns]


@pytest.mark.parametrize(("row", "column"), CELLS)
async def test_a_client_does_what_its_cell_says(bench: ClientBench, row: ClientRow, column: str) -> None:
    if row.npm and not node_is_ready():
        pytest.skip("the packages for Node.js are not installed")
    assert column in CHECKS[row.checks], "a cell without a check"
    bench.results[row.name, column] = False
    task = await bench.create_task(column)
    result = await bench.run(row, task)
    await CHECKS[row.checks][column](CellOutcome(row=row, task=task, result=result, bench=bench))
    bench.results[row.name, column] = True


async def test_the_page_shows_the_results_of_the_run(bench: ClientBench) -> None:
    if missing := list_cells(ROWS) - bench.results.keys():
        pytest.skip(f"{len(missing)} cells were not run")
    page = render_page(ROWS, bench.results, read_tools())
    if os.environ.get("CLIENTS_WRITE_PAGE"):
        PAGE.write_text(page, encoding="utf-8")
    assert drop_tools(PAGE.read_text(encoding="utf-8")) == drop_tools(page), "run scripts/test-clients --write"
