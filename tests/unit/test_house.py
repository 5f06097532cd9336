"""The house rules that no linter knows: sizes, names, and how many exceptions there may be."""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.unit.source_trees import ROOT, paths, source, trees, walk

PRODUCT = (*paths("newton"), *paths("bench"))
TESTS = paths("tests")
EVERY = [str(path.relative_to(ROOT)) for path in (*PRODUCT, *TESTS)]

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 40
MOST_CLASS_LINES = 200
MOST_PARAMETERS = 6
RIMS = ["newton/fault_isolation.py"]  # where anything may be caught
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "handler", "handlers"}

# Exceptions granted to checkers in the product, for each 1,000 lines. The design allows less than one; this is a
# ratchet: lower it when one goes, never raise it.
MOST_EXCEPTIONS_PER_1000 = 1.0
EXCEPTION = re.compile(r"#\s*(type:\s*ignore|noqa|(pyright|pyrefly):\s*ignore|pragma:\s*no cover)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def parsed() -> dict[str, ast.Module]:
    return {**trees("newton"), **trees("bench"), **trees("tests")}


@cache
def functions(tree: ast.AST) -> list[Function]:
    return [node for node in walk(tree) if isinstance(node, Function)]


def code_lines(node: Function) -> int:
    """The lines of its body, without docstring, comments and blank lines."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return len({n.lineno for part in body for n in ast.walk(part) if isinstance(n, ast.stmt | ast.expr)})


def class_lines(node: ast.ClassDef) -> int:
    """The lines of its body, without docstrings, comments and blank lines."""
    methods = [part for part in node.body if isinstance(part, Function)]
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign | ast.Assign)]
    return len(fields) + sum(1 + code_lines(method) for method in methods)


def parameters(node: Function) -> int:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([arg for arg in every if arg.arg not in ("self", "cls")])


def exceptions(path: Path) -> Iterator[str]:
    """The comments that grant a checker an exception."""
    if not EXCEPTION.search(source(path)):
        return
    for token in tokenize.generate_tokens(io.StringIO(source(path)).readline):
        if token.type == tokenize.COMMENT and EXCEPTION.search(token.string):
            yield token.string


def test_files_and_functions_are_short_enough_to_read(parsed: dict[str, ast.Module]) -> None:
    lines = {name: len(source(ROOT / name).splitlines()) for name in EVERY}
    assert {name: count for name, count in lines.items() if count > MOST_FILE_LINES} == {}
    assert [f"{name}: {large}" for name, tree in parsed.items() for large in oversized(tree)] == []
    # functions take few parameters
    commands = ("newton/runtime/cli/", "newton/operations/")  # the parameters are flags or inputs
    plain = [name for name in EVERY if name.startswith("newton/") and not name.startswith(commands)]
    many = [f"{name}: {f.name}" for name in plain for f in functions(parsed[name]) if parameters(f) > MOST_PARAMETERS]
    assert many == []
    body = "\n".join(f"    x{n} = {n}" for n in range(50))
    (function,) = functions(ast.parse(f'def f():\n    """Doc."""\n    # why\n\n{body}\n'))
    assert code_lines(function) == 50


def oversized(tree: ast.Module) -> list[str]:
    spread = [f for f in functions(tree) if (f.end_lineno or 0) - f.lineno >= MOST_FUNCTION_LINES]
    long = [(f.name, code_lines(f)) for f in spread if code_lines(f) > MOST_FUNCTION_LINES]
    every = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    classes = [node for node in every if (node.end_lineno or 0) - node.lineno >= MOST_CLASS_LINES]
    spans = [(node.name, class_lines(node)) for node in classes]
    return [f"{name} has {lines} lines" for name, lines in (*long, *(s for s in spans if s[1] > MOST_CLASS_LINES))]


def test_every_module_says_its_job_in_its_name_and_one_sentence(parsed: dict[str, ast.Module]) -> None:
    assert [name for name in EVERY if {Path(name).stem, *Path(name).parent.parts} & VAGUE] == []
    silent = [name for name, tree in parsed.items() if not (ast.get_docstring(tree) or "").partition("\n")[0]]
    assert silent == ["tests/__init__.py", "tests/fitting/__init__.py"]


def test_no_module_binds_a_constant_twice(parsed: dict[str, ast.Module]) -> None:
    """Else those who read the first value get the second one. ruff sees this of functions and classes."""
    assert [f"{name}: {constant}" for name, tree in parsed.items() for constant in rebound(tree)] == []
    assert rebound(ast.parse("A = 2.0\nA, B = 600.0, 60.0\n")) == ["A"]
    assert rebound(ast.parse("A: int = 2\nA = 3\n")) == ["A"]
    assert rebound(ast.parse("A = {}\nA['b'] = 1\nA.b = 2\n")) == []


def rebound(tree: ast.Module) -> list[str]:
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    annotated = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    parts = [part for target in (*assigned, *annotated) for part in ast.walk(target)]
    count = Counter(part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return [name for name, times in count.items() if times > 1]


def test_nothing_is_caught_that_was_not_expected(parsed: dict[str, ast.Module]) -> None:
    assert [name for name, tree in parsed.items() for _ in broad(tree)] == RIMS
    # a broad except is noticed
    assert broad(ast.parse("try:\n    f()\nexcept Exception:\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept (OSError, BaseException):\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept:\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept OSError:\n    pass\n")) == []


def broad(tree: ast.AST) -> list[int]:
    """The lines that catch everything, or catch and do nothing with `except: pass`."""
    caught = [node for node in walk(tree) if isinstance(node, ast.ExceptHandler)]
    everything = {"Exception", "BaseException"}
    return [node.lineno for node in caught if node.type is None or everything & names(node.type)]


def names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_exceptions_to_the_checkers_are_rare_and_say_why() -> None:
    lines = sum(len(source(path).splitlines()) for path in PRODUCT)
    granted = sum(1 for path in PRODUCT for _ in exceptions(path))
    assert granted <= MOST_EXCEPTIONS_PER_1000 * lines / 1_000, f"{granted} in {lines} lines"
    # every exception to the checkers says why
    bare = [
        f"{path.relative_to(ROOT)}: {comment}"
        for path in (*PRODUCT, *TESTS)
        for comment in exceptions(path)
        if not re.search(r"(\]|\d|cover)\s*(#|\(|-)\s*\w+", comment)
    ]
    assert bare == []


def test_every_test_asserts_something(parsed: dict[str, ast.Module]) -> None:
    tests = {name: tree for name, tree in parsed.items() if name.startswith("tests/")}
    assert [f"{name}: {f}" for name, tree in tests.items() for f in idle(tree)] == []
    assert idle(ast.parse("def test_it():\n    f()\n")) == ["test_it"]


def idle(tree: ast.Module) -> list[str]:
    """The tests that assert nothing, neither themselves nor by a function of their module."""
    asserting = {f.name for f in functions(tree) if asserts(f)}
    tests = [f for f in functions(tree) if f.name.startswith("test_")]
    return [f.name for f in tests if not asserts(f) and not calls(f, asserting)]


@cache
def asserts(function: Function) -> bool:
    nodes = list(ast.walk(function))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return (
        any(isinstance(node, ast.Assert) for node in nodes)
        or any(isinstance(func, ast.Attribute) and func.attr in ("raises", "fail") for func in called)
        or any(isinstance(func, ast.Name) and func.id.startswith("assert_") for func in called)
    )


def calls(function: Function, others: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in others for node in ast.walk(function))


POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,{} ]+\})\+")
SOURCES = sorted([*(ROOT / "newton").rglob("*.py"), *(ROOT / "newton").rglob("*.yaml")])


def test_no_group_has_a_possessive_quantifier() -> None:
    """Python before 3.11.5 matches such a group wrongly if a part of it fails after another part matched."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert not found, "write an atomic group, (?>(?:...)*), instead"
    assert POSSESSIVE_GROUP.search(r"(?:a|b)*+") and POSSESSIVE_GROUP.search(r"(?:\s[a-z]++)++")
    assert not POSSESSIVE_GROUP.search(r"(?>(?:a|b)*)")


@pytest.mark.skipif(sys.version_info >= (3, 11, 5), reason="this Python matches possessive groups as documented")
def test_the_reason_for_the_rule_holds() -> None:
    assert re.search(r"(?:[^-]++|-(?!-))*+--", "a-b--") is None
