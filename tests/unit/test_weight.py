"""What the project weighs. A figure is lowered when the project gets lighter; a commit that raises one says what a user
gains.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

from tests.unit.source_trees import ROOT, paths, source, trees, walk

MOST = {
    "lines of newton": 122_390,
    "modules of newton": 664,
    "classes that only carry data": 882,
    "lines of tests": 86_850,
    "lines of docs": 7_880,
}
OF_FIELDS = re.compile("property|validator|serializer|computed_field")
MOST_LINES_OF_A_DECLARATION = 20  # of an operation on average: decorator, signature and help


def test_the_project_is_no_heavier_than_it_was() -> None:
    found = {
        "lines of newton": count_lines(paths("newton")),
        "modules of newton": sum(path.name != "__init__.py" for path in paths("newton")),
        "classes that only carry data": sum(map(count_carriers, trees("newton").values())),
        "lines of tests": count_lines(paths("tests")),
        "lines of docs": count_lines(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"),
    }
    assert {name: count for name, count in found.items() if count > MOST[name]} == {}
    assert count_carriers(ast.parse("class A:\n    x: int\n\nclass B:\n    x: int\n    def f(self): pass\n")) == 1


def test_an_operation_is_declared_in_few_lines() -> None:
    declared = [one for tree in trees("newton").values() for one in tree.body if is_operation(one)]
    lines = [one.body[1].lineno - one.decorator_list[0].lineno for one in declared]
    assert len(lines) > 100 and sum(lines) / len(lines) <= MOST_LINES_OF_A_DECLARATION


def count_lines(files: Iterable[Path]) -> int:
    return sum(len(source(path).splitlines()) for path in files)


def count_carriers(tree: ast.Module) -> int:
    classes = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    return sum(any(isinstance(part, ast.AnnAssign) for part in one.body) and not has_method(one) for one in classes)


def has_method(node: ast.ClassDef) -> bool:
    """Whether a class has a function besides properties and the checks of its fields."""
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(not any(OF_FIELDS.search(ast.unparse(mark)) for mark in one.decorator_list) for one in functions)


def is_operation(node: ast.stmt) -> TypeGuard[ast.AsyncFunctionDef]:
    marks = node.decorator_list if isinstance(node, ast.AsyncFunctionDef) else []
    return any(isinstance(mark, ast.Call) and ast.unparse(mark.func) == "operation" for mark in marks)
