"""The syntax trees of the code and the tests, parsed and walked once for all checks of a process."""

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def paths(folder: str) -> tuple[Path, ...]:
    return tuple(sorted((ROOT / folder).rglob("*.py")))


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def trees(folder: str) -> dict[str, ast.Module]:
    """The trees of a folder by path from the root."""
    gc.disable()  # they are a million objects that stay
    try:
        return {str(path.relative_to(ROOT)): ast.parse(source(path)) for path in paths(folder)}
    finally:
        gc.freeze()
        gc.enable()


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))
