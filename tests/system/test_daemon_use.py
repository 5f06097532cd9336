"""Commands that use the running daemon over HTTP: they open neither a database nor a model."""

import json
from pathlib import Path

import httpx2
import pytest

from newton import __version__
from newton.runtime.daemon_address import publish_address
from newton.runtime.daemon_socket import COMMANDS_PATH, FOLDER, LOCAL_PREFIX, SOCKET_FILE, listen
from newton.runtime.local_daemon import find_daemon
from tests.system.daemons import Daemon
from tests.system.test_mcp_relay import OPENING, loaded

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
