"""The synchronous client is current, and the package needs nothing else of Newton."""

import ast
from pathlib import Path

import pytest

import newton
from newton import client
from tests.docs.client_operations import CLIENT, generate_files
from tests.docs.sync_client import SOURCE, TARGET, generate_modules, to_synchronous

ASYNCHRONOUS = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
MODULES = sorted(SOURCE.rglob("*.py"))


def test_the_synchronous_client_is_current() -> None:
    generated = generate_modules()
    assert {path.name for path in TARGET.glob("*.py")} == generated.keys(), "run scripts/make-reference"
    for name, text in generated.items():
        assert text == (TARGET / name).read_text(encoding="utf-8"), f"{name}: run scripts/make-reference"


def test_the_operations_of_the_client_are_current() -> None:
    stale = [name for name, text in generate_files().items() if text != (CLIENT / name).read_text(encoding="utf-8")]
    assert stale == [], "run scripts/make-reference"


@pytest.mark.parametrize("path", sorted(TARGET.glob("*.py")), ids=lambda path: path.name)
def test_nothing_asynchronous_is_left(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [node for node in ast.walk(tree) if isinstance(node, ASYNCHRONOUS)] == []
    assert "asyncio" not in path.read_text(encoding="utf-8")


def test_every_method_is_there_in_both_forms_and_described() -> None:
    names = {name for name in dir(client.Client) if not name.startswith("_")}
    others = {name for name in dir(client.SyncClient) if not name.startswith("_")}
    assert names - {"aclose"} == others - {"close"}
    assert [name for name in names if not getattr(client.Client, name).__doc__] == []


def test_a_module_is_translated_by_its_tokens() -> None:
    source = (
        'async def read(self, text="await me") -> AsyncGenerator[int]:\n'
        '    """Use it with `async with`."""\n'
        "    async with aclosing(x) as y:\n"
        "        return [(await one).z async for one in y]\n"
    )
    assert to_synchronous(source, set()) == (
        'def read(self, text="await me") -> Generator[int]:\n'
        '    """Use it with `with`."""\n'
        "    with closing(x) as y:\n"
        "        return [(one).z for one in y]\n"
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_client_imports_only_itself_and_its_two_dependencies(path: Path) -> None:
    allowed = {
        "asyncio",
        "base64",
        "collections",
        "contextlib",
        "datetime",
        "httpx2",
        "json",
        "os",
        "random",
        "time",
        "typing",
    }
    allowed |= {"functools", "importlib", "inspect", "typing_extensions", "urllib", "uuid"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(level=0):
                names = [node.module or ""]
            case _:
                continue
        assert {name.partition(".")[0] for name in names} <= allowed


def test_package_and_client_have_one_version() -> None:
    assert client.__version__ == newton.__version__
