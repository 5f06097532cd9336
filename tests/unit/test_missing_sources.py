"""Every source that can be missing from a result has an effect that the command line states."""

import ast

from newton.runtime.cli.formatting import MISSING_SOURCE_EFFECTS
from tests.unit.source_trees import trees, walk

READERS = {"read_or_default", "start"}  # functions whose first argument is the name of a source
MODULES = (
    "newton/cognition/sources/gather.py",
    "newton/memory/query_vectors.py",
    "newton/memory/recall.py",
    "newton/agent/services/decisions.py",
)


def find_source_names(node: ast.AST) -> set[str]:
    """Return the names of sources that a node reads or reports as missing."""
    found: list[ast.expr | None] = []
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in READERS:
            found = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr="missing"), slice=key)]):
            found = [key]
        case ast.Call(func=ast.Name(id="_SearchBranch"), args=[_, ast.Dict(keys=keys)]):
            found = keys
        case ast.Tuple(elts=[ast.Call(func=ast.Name(id="RecallQuery")), ast.Dict(keys=keys)]):
            found = keys
        case ast.keyword(arg="missing", value=value):
            found = [key for one in walk(value) if isinstance(one, ast.Dict) for key in one.keys]
        case _:
            pass
    return {key.value for key in found if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def test_every_missing_source_has_an_effect() -> None:
    names = {name for path in MODULES for node in walk(trees("newton")[path]) for name in find_source_names(node)}
    assert {"input embedding", "embeddings", "censors by meaning", "web search"} <= names
    assert names == set(MISSING_SOURCE_EFFECTS)
