"""The generated files of the client are current, and it needs nothing else of Newton."""

import ast
from pathlib import Path

import pytest

import newton
from newton import client
from tests.docs.authority_table import PAGE, fill_page
from tests.docs.client_operations import CLIENT, generate_files

MODULES = sorted(CLIENT.glob("*.py"))


def test_the_operations_of_the_client_are_current() -> None:
    stale = [name for name, text in generate_files().items() if text != (CLIENT / name).read_text(encoding="utf-8")]
    assert stale == [], "run scripts/make-reference"


def test_the_table_of_who_may_do_what_is_current() -> None:
    assert fill_page() == PAGE.read_text(encoding="utf-8"), "run scripts/make-reference"


def test_every_method_is_there_in_both_forms_and_described() -> None:
    names = {name for name in dir(client.Client) if not name.startswith("_")}
    others = {name for name in dir(client.SyncClient) if not name.startswith("_")}
    assert names - {"aclose"} == others - {"close", "max_attempts", "redacted"}
    assert [name for name in names if not getattr(client.Client, name).__doc__] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(CLIENT)))
def test_the_client_imports_only_itself_and_its_two_dependencies(path: Path) -> None:
    used = "asyncio base64 collections contextlib datetime functools httpx2 importlib inspect json operator os random "
    allowed = (used + "sys threading typing typing_extensions urllib uuid").split()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(level=0):
                names = [node.module or ""]
            case _:
                continue
        assert {name.partition(".")[0] for name in names} <= {*allowed}


def test_package_and_client_have_one_version() -> None:
    assert client.__version__ == newton.__version__
