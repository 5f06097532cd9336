"""Every cell of the client matrix: a real client, a daemon, and a strict model server behind it."""

import pytest

from tests.clients.checks import CHECKS, CellOutcome
from tests.clients.conftest import ClientBench, node_is_ready
from tests.clients.matrix import ClientRow, load_rows

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]
CELLS = [pytest.param(row, column, id=f"{row.name}-{column}") for row in load_rows() for column in row.columns]


@pytest.mark.parametrize(("row", "column"), CELLS)
async def test_a_client_does_what_its_cell_says(bench: ClientBench, row: ClientRow, column: str) -> None:
    if row.needs_node and not node_is_ready():
        pytest.skip("the packages for Node.js are not installed")
    bench.results[row.name, column] = False
    task = await bench.create_task(column)
    result = await bench.run(row, task)
    await CHECKS[row.checks][column](CellOutcome(row=row, task=task, result=result, bench=bench))
    bench.results[row.name, column] = True
