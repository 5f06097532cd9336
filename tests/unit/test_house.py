"""The house rules that no linter knows: sizes, names, and how many exceptions there may be."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = sorted((ROOT / "newton").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
EVERY = [str(path.relative_to(ROOT)) for path in (*PRODUCT, *TESTS)]

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 40
MOST_CLASS_LINES = 200
MOST_PARAMETERS = 6
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "handler", "handlers"}

# Exceptions granted to checkers in the product, for each 1,000 lines. The design allows less than one; this is a
# ratchet: lower it when one goes, never raise it.
MOST_EXCEPTIONS_PER_1000 = 1.0
EXCEPTION = re.compile(r"#\s*(type:\s*ignore|noqa|pyright:\s*ignore|pragma:\s*no cover)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def code_lines(node: Function) -> int:
    """The lines of its body, without docstring, comments and blank lines."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return len({n.lineno for part in body for n in ast.walk(part) if isinstance(n, ast.stmt | ast.expr)})


def parameters(node: Function) -> int:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([arg for arg in every if arg.arg not in ("self", "cls")])


def comments(path: Path) -> Iterator[str]:
    with tokenize.open(path) as file:
        source = file.read()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("name", EVERY)
def test_a_file_is_short_enough_to_read(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_FILE_LINES


@pytest.mark.parametrize("name", EVERY)
def test_functions_and_classes_are_short_enough_to_read(name: str) -> None:
    tree = parsed(name)
    long = [f"{f.name}: {code_lines(f)} lines" for f in functions(tree) if code_lines(f) > MOST_FUNCTION_LINES]
    large = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno >= MOST_CLASS_LINES
    ]
    assert long + large == []


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("newton/")])
def test_functions_take_few_parameters(name: str) -> None:
    # The parameters of a command are its flags.
    if name.startswith(("newton/runtime/cli/", "newton/bench/")):
        pytest.skip("a command's parameters are its flags")
    assert [f.name for f in functions(parsed(name)) if parameters(f) > MOST_PARAMETERS] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name for name in EVERY if {Path(name).stem, *Path(name).parent.parts} & VAGUE] == []


def test_every_module_says_its_job_in_one_sentence() -> None:
    def first(name: str) -> str:
        return (ast.get_docstring(parsed(name)) or "").splitlines()[0] if ast.get_docstring(parsed(name)) else ""

    missing = [name for name in EVERY if name not in ("tests/__init__.py",) and not first(name)]
    assert missing == []


def test_nothing_is_caught_that_was_not_expected() -> None:
    assert [f"{name}:{line}" for name in EVERY for line in broad(parsed(name))] == []


def broad(tree: ast.AST) -> list[int]:
    """The lines that catch everything, or catch and do nothing with `except: pass`."""
    caught = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    everything = {"Exception", "BaseException"}
    return [node.lineno for node in caught if node.type is None or everything & names(node.type)]


def names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_a_broad_except_is_noticed() -> None:
    assert broad(ast.parse("try:\n    f()\nexcept Exception:\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept (OSError, BaseException):\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept:\n    pass\n")) == [3]
    assert broad(ast.parse("try:\n    f()\nexcept OSError:\n    pass\n")) == []


def test_a_long_function_is_noticed() -> None:
    body = "\n".join(f"    x{n} = {n}" for n in range(50))
    (function,) = functions(ast.parse(f'def f():\n    """Doc."""\n    # why\n\n{body}\n'))
    assert code_lines(function) == 50


def test_exceptions_to_the_checkers_stay_rare() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in PRODUCT)
    granted = sum(bool(EXCEPTION.search(comment)) for path in PRODUCT for comment in comments(path))
    assert granted <= MOST_EXCEPTIONS_PER_1000 * lines / 1_000, f"{granted} in {lines} lines"


def test_every_exception_to_the_checkers_says_why() -> None:
    bare = [
        f"{path.relative_to(ROOT)}: {comment}"
        for path in (*PRODUCT, *TESTS)
        for comment in comments(path)
        if EXCEPTION.search(comment) and not re.search(r"(\]|\d|cover)\s*(#|\(|-)\s*\w+", comment)
    ]
    assert bare == []


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("tests/")])
def test_every_test_asserts_something(name: str) -> None:
    tree = parsed(name)
    asserting = {f.name for f in functions(tree) if asserts(f)}
    idle = [
        f.name for f in functions(tree) if f.name.startswith("test_") and not asserts(f) and not calls(f, asserting)
    ]
    assert idle == []


def asserts(function: Function) -> bool:
    return any(
        isinstance(node, ast.Assert)
        or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("raises", "fail")
        )
        for node in ast.walk(function)
    )


def calls(function: Function, others: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in others for node in ast.walk(function))
