"""Commands load few modules, and with a running daemon neither a database nor a model."""

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from newton import __version__
from newton.runtime import cli
from newton.runtime.daemon_address import publish_address
from newton.runtime.daemon_socket import COMMANDS_PATH, FOLDER, LOCAL_PREFIX, SOCKET_FILE, listen
from newton.runtime.local_daemon import find_daemon
from tests.system.daemons import Daemon
from tests.system.test_mcp_relay import OPENING, loaded
from tests.system.typed import ROOT

MODULES_OF_AGENTS = OPENING | {"newton.agent.scope", "newton.cognition.pipeline", "newton.providers.minilm"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("doctor",), "commands with the settings below, and made these checks"),
        (("doctor", "--verify", "--json"), "the decision log is unchanged (0 records)"),
        (("dashboard",), "/dashboard/sign-in?code="),
    ],
)
def test_a_command_beside_a_daemon_opens_no_agent(
    served: Daemon, house: Path, words: tuple[str, ...], shown: str
) -> None:
    served.begins("used")
    done, modules = loaded(house, *words, *(() if words[0] == "dashboard" else ("--agent", "used")))
    assert (done.returncode in {0, 1}, modules & MODULES_OF_AGENTS) == (True, set()), done.stderr
    assert shown in done.stdout


def test_a_server_is_tested_by_the_daemon_as_it_is_listed_now(served: Daemon, house: Path) -> None:
    (house / "data" / "mcp.json").write_text(json.dumps({"mcpServers": {"absent": {"command": "no-such-command"}}}))
    done, modules = loaded(house, "mcp", "test", "absent", "--json")
    assert (done.returncode, modules & MODULES_OF_AGENTS) == (1, set()), done.stderr
    assert json.loads(done.stdout)["failure"]
    unknown, _ = loaded(house, "mcp", "test", "unknown")
    assert "There is no MCP server 'unknown'." in unknown.stderr
    (house / "data" / "mcp.json").unlink()


@pytest.mark.slow
def test_other_settings_are_named_and_used_in_the_own_process(served: Daemon, house: Path) -> None:
    done, modules = loaded(house, "mcp", "test", "absent", NEWTON_PACK="support")
    assert done.returncode != 0
    assert "started with another value of pack" in done.stderr
    assert "newton.runtime.mcp_servers.servers" in modules


def test_the_api_on_the_socket_takes_its_user_for_the_operator(served: Daemon, house: Path) -> None:
    served.begins("socketed")
    transport = httpx2.HTTPTransport(uds=str(house / "data" / FOLDER / SOCKET_FILE))
    with httpx2.Client(base_url="http://localhost", transport=transport) as client:
        assert "socketed" in {one["name"] for one in client.get("/v1/agents").json()["items"]}
        assert client.get("/v1/token", headers={"X-Newton-Agent": "socketed"}).json()["agent"] == "socketed"
        for path in (COMMANDS_PATH.replace(__version__, "0.0.0"), f"{LOCAL_PREFIX}unknown"):
            assert client.post(path).status_code == 404
    with served.client() as client:
        assert client.post(COMMANDS_PATH).status_code == 404, "only the socket takes commands"
    assert httpx2.get(f"{served.url}/v1/agents").status_code == 401


def test_the_address_of_a_killed_daemon_finds_none(tmp_path: Path) -> None:
    with publish_address(tmp_path, "http://killed"):
        assert find_daemon(tmp_path) is None
        with listen(tmp_path):
            assert find_daemon(tmp_path) is not None
        assert find_daemon(tmp_path) is None


def load_modules(home: Path, statement: str) -> set[str]:
    """Return the names of the modules that a statement loads."""
    script = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NEWTON_DATA_DIR": str(home), "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return set(done.stdout.split("\n"))


# The modules that use the daemon's registry of agents.
OF_DAEMON = {
    f"newton.runtime.cli.{name}"
    for name in ("command_server", *(f"operations.{one}" for one in ("serve", "agents", "jobs")))
}


@pytest.mark.slow
def test_no_command_loads_the_modules_of_an_agent_before_it_opens_one(tmp_path: Path) -> None:
    names = {one.name for one in pkgutil.walk_packages(cli.__path__, f"{cli.__name__}.")} - OF_DAEMON
    assert len(names) > 40
    loaded = load_modules(tmp_path, f"import importlib\nfor name in {sorted(names)}: importlib.import_module(name)")
    assert names <= loaded
    assert not loaded & {"newton.runtime.bootstrap", "openai"}  # loading either takes longer than such a command


@pytest.mark.slow
def test_a_preview_of_an_import_loads_no_model_and_no_services_of_an_agent(tmp_path: Path) -> None:
    (tmp_path / "previewed.ndjson").write_text(
        '{"type": "fact", "content": "Cups are white.", "at": "2026-01-01T00:00:00Z"}\n', encoding="utf-8"
    )
    previews = [["import", "--preview", str(tmp_path / path)] for path in ("previewed.ndjson", ".")]
    statement = f"assert [run_command_line(words) for words in {previews}] == [0, 0]"
    loaded = load_modules(tmp_path, f"from newton.runtime.cli.app import run_command_line\n{statement}")
    assert not loaded & {"newton.runtime.bootstrap", "newton.runtime.wiring", "onnxruntime", "openai"}


def test_help_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = load_modules(tmp_path, "from newton.runtime.cli import run; run(['--help'])")
    assert not loaded & {"cyclopts", "pydantic", "openai", "onnxruntime", "asyncpg", "numpy", "prompt_toolkit", "yaml"}
    assert len(loaded) < 200, "some 150 are enough"
