"""The commands that operations declare, read from the source of their modules: importing one loads the services."""

import ast
from collections.abc import Iterator
from pathlib import Path

from newton.runtime.cli.command_registry import OPERATION_MODULES

OPERATIONS_PACKAGE = "newton.operations"
OPERATIONS_FOLDER = Path(__file__).parents[2] / "operations"


def list_group_commands(group: str) -> dict[str, tuple[str, str]]:
    """Return the commands of a group that operations declare: the path of the function and the help, by name."""
    found: dict[str, tuple[str, str]] = {}
    for module in OPERATION_MODULES.get(group, ()):
        source = OPERATIONS_FOLDER.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        for command, function, text in _read_commands(ast.parse(source)):
            name, _, rest = command.partition(" ")
            if name == group:
                found[rest] = (f"operation_commands:{module}.{function}", text)
    return found


def _read_commands(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield the command, the name of the function and the first sentence of the help of each declared operation."""
    for node in tree.body:
        if not isinstance(node, ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "command":
                    text = " ".join((ast.get_docstring(node) or "").split())
                    yield ast.literal_eval(keyword.value), node.name, f"{text.partition('. ')[0].rstrip('.')}."
