"""The distribution newton-client: without the server, from its files and from its wheel."""

import asyncio
import json
import os
import re
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from newton.client import ApiError, Client, SyncClient
from newton.db.pool import Database
from newton.settings import load
from tests.support import has_code
from tests.system.client_package import DISTRIBUTION, ROOT, lay_out, run
from tests.system.served import Api, served

ADAPTERS = {
    "agents": "openai_agents",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic_ai",
}  # by the module of the framework
USAGE = Path(__file__).with_name("client_usage.py")


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("newton_client-*.whl")
    return wheel


async def use(python: str, api: Api, *, program: str = "", **variables: str) -> str:
    """Run a program; return its output. That of USAGE is the names of packages that a client has no need of."""
    variables = {"NEWTON_URL": api.url, "NEWTON_TOKEN": await api.token("ana"), **variables}
    words = ("-c", program) if program else (str(USAGE),)
    return await run(python, *words, env={"PATH": os.environ["PATH"], **variables})


def read_blocks(page: str) -> list[str]:
    """The programs of a page."""
    text = (ROOT / "docs" / "clients" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


async def test_both_clients_work_without_the_server(api: Api, tmp_path: Path) -> None:
    assert await use(sys.executable, api, PYTHONPATH=str(lay_out(tmp_path / "site"))) == ""


@pytest.mark.slow
@pytest.mark.parametrize("page", ["python.md", "adapters.md"])
async def test_the_blocks_of_the_documents_run(page: str, api: Api, tmp_path: Path) -> None:
    blocks = read_blocks(page)
    missing = [name for name in ADAPTERS if find_spec(name) is None]
    runnable = [one for one in blocks if not any(f"adapters.{ADAPTERS[name]} " in one for name in missing)]
    if not runnable:
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert len(blocks) == {"python.md": 5, "adapters.md": 3}[page]
    site = os.pathsep.join([str(lay_out(tmp_path / "site")), *sys.path[1:]])
    for block in runnable:
        await use(sys.executable, api, program=block, PYTHONPATH=site)


@pytest.mark.slow  # it downloads the build backend and the dependencies
async def test_the_wheel_works_in_an_environment_of_its_own(api: Api, tmp_path: Path) -> None:
    env = tmp_path / "venv"
    await run(sys.executable, "-m", "venv", str(env))
    python = str(env / "bin" / "python")
    await run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(DISTRIBUTION))
    wheel = wheel_in(tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert names >= {"newton_client/py.typed", "newton_client/sync_client.pyi", "newton_client/adapters/__init__.py"}
    assert all(name.startswith(("newton_client/", "newton_client-")) for name in names)
    await run(python, "-m", "pip", "install", "-q", str(wheel))
    assert await use(python, api) == ""


@pytest.mark.slow
async def test_a_program_with_both_clients_is_typed_strictly(tmp_path: Path) -> None:
    site = str(lay_out(tmp_path / "site"))
    config = {"include": [USAGE.name], "typeCheckingMode": "strict", "extraPaths": [site]}
    (tmp_path / USAGE.name).write_text(USAGE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    words = (str(Path(sys.executable).with_name("pyright")), "-p", str(tmp_path), "--pythonpath", sys.executable)
    assert "0 errors" in await run(*words, env=dict(os.environ))


def test_the_distribution_is_built_from_the_client_of_newton() -> None:
    assert (DISTRIBUTION / "client").resolve() == DISTRIBUTION.parents[1] / "newton" / "client"


def test_url_and_token_come_from_arguments_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEWTON_URL", "NEWTON_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for kind in (Client, SyncClient):
        with pytest.raises(ApiError, match="No token", check=has_code("config_error")):
            kind()
        with pytest.raises(ApiError, match="invalid", check=has_code("config_error")):
            kind(token="two\nlines")
        with pytest.raises(ApiError, match="not the URL", check=has_code("config_error")):
            kind("127.0.0.1:8700", token="x")


def test_the_variable_of_the_client_is_no_unknown_setting() -> None:
    assert load(env={"NEWTON_URL": "http://127.0.0.1:8700"}).agent == "default"


PROGRAMS = Path(__file__).with_name("sync_client_programs.py")
OUTPUTS = {
    "exit_with_all_open": "True\nana\n",
    "fork_with_all_open": (
        "ana\nNeither a finalizer nor a forked process can wait for this. Open a stream again there.\n0 True ana\n"
    ),
    "interrupt_calls": "interrupted ana\nall closed\n",
    "leave_streams": "all closed\n",
    "share_a_client": (
        "quay harbour mole pier wharf jetty dock slip\nana ana\nCannot send a request, as the client has been closed.\n"
    ),
    "fail_calls": (
        "missing a required argument: 'query'\nmissing a required argument: 'memory_id'\n"
        "not_found 1\ndaemon_unreachable 1\n"
    ),
}


async def test_programs_end_with_the_expected_output_and_write_nothing_while_they_exit(
    db: Database, tmp_path: Path
) -> None:
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        async with api.client(token) as client:
            for number in range(3):
                await client.remember(f"Ana has {number} cats.")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NEWTON_URL": api.url, "NEWTON_TOKEN": token}
        runs = (run(sys.executable, str(PROGRAMS), name, env=env) for name in OUTPUTS)
        found = dict(zip(OUTPUTS, await asyncio.gather(*runs), strict=True))
        assert found == OUTPUTS, found
