"""Run the cells of one client: each line of standard input is a task, each line of standard output its result.

A program ends with its traceback when a client raises an error that the cell does not expect; the tests start it again.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

UNKNOWN_MODEL = "gpt-9"
DOWN_MODEL = "down"  # an upstream that nobody serves
WEATHER_TEXT = "It rains in Porto."
ORDER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"drink": {"type": "string"}, "cups": {"type": "integer"}},
    "required": ["drink", "cups"],
    "additionalProperties": False,
}
WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTask:
    """One cell: the daemon, a token of an agent without memories, and what to say.

    `agent` is the name of that agent, `data_dir` the data folder of the daemon, `upstream` the URL of the model server.
    """

    cell: str
    url: str
    token: str
    agent: str
    data_dir: str
    upstream: str
    upstream_key: str
    say: str
    fact: str
    question: str
    image: str


Result = dict[str, Any]
Cell = Callable[[CellTask], Result]


def serve(cells: Mapping[str, Cell]) -> None:
    """Answer tasks until the input ends. What libraries print goes to standard error."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        task = CellTask(**json.loads(line))
        out.write(f"{json.dumps(cells[task.cell](task))}\n")
        out.flush()


def describe(error: BaseException) -> Result:
    """Return class, HTTP status and message of an error."""
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None) or getattr(error, "status", None),
        "message": str(error),
    }


def catch(kind: type[Exception], action: Callable[[], object]) -> Result:
    """Return the error that an action raises."""
    try:
        action()
    except kind as error:
        return describe(error)
    raise AssertionError("no error was raised")
