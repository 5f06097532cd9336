"""Every source that can be missing from a result has an effect that the command line states."""

import ast

from newton.cognition.assembly.sections import MISSING_SOURCES
from tests.unit.source_trees import trees, walk

READERS = {"read_or_default", "start"}  # functions whose first argument is the name of a source
MODULES = (
    "newton/cognition/sources/gather.py",
    "newton/cognition/sources/question_memories.py",
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


def find_part_names(node: ast.AST) -> set[str]:
    """Return the names of the parts of a context that a node runs."""
    match node:
        case ast.Call(func=ast.Name(id="run_part" | "compute_part"), args=[ast.Constant(value=str(name)), *_]):
            return {name}
        case _:
            return set()


def test_every_missing_source_has_an_effect() -> None:
    nodes = {path: walk(tree) for path, tree in trees("newton").items()}
    names = {name for path in MODULES for node in nodes[path] for name in find_source_names(node)}
    assert {"input embedding", "embeddings", "censors by meaning", "web search", "standing statements"} <= names
    assert names <= MISSING_SOURCES.keys()
    contexts = [path for path in nodes if path.startswith("newton/cognition/")]
    parts = {name for path in contexts for node in nodes[path] for name in find_part_names(node)}
    assert "selection" in parts
    assert names | parts >= MISSING_SOURCES.keys()
