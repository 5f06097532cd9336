"""Commands that use the running daemon over HTTP: they open neither a database nor a model."""

import json
from pathlib import Path

import pytest

from newton.runtime import local_daemon
from newton.runtime.access.operator_token import load_or_create_token
from newton.runtime.daemon_address import publish_address
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
    assert "newton.runtime.mcp_servers.server_check" in modules


def test_the_token_is_sent_only_to_a_socket_of_this_user(served: Daemon, house: Path, tmp_path: Path) -> None:
    found = local_daemon.find_daemon(house / "data")
    assert found is not None and found.token == served.token
    for table in local_daemon.SOCKET_TABLES:
        lines = table.read_text(encoding="ascii").splitlines()
        head, rows = lines[0], [line.split() for line in lines[1:]]
        others = [" ".join([*row[:7], "65534", *row[8:]]) for row in rows]
        (tmp_path / table.name).write_text("\n".join([head, *others]) + "\n", encoding="ascii")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_daemon, "SOCKET_TABLES", tuple(tmp_path / one.name for one in local_daemon.SOCKET_TABLES))
        assert local_daemon.find_daemon(house / "data") is None
        patch.setattr(local_daemon, "SOCKET_TABLES", (tmp_path / "absent",))
        assert local_daemon.find_daemon(house / "data") is None, "a system without such tables cannot tell"


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", True), ("192.0.2.7", False), ("a.invalid", False)],
)
def test_the_token_is_sent_only_to_this_machine(served: Daemon, tmp_path: Path, host: str, is_own: bool) -> None:
    port = served.url.rpartition(":")[2]
    load_or_create_token(tmp_path)
    with publish_address(tmp_path, f"http://{host}:{port}"):
        assert (local_daemon.find_daemon(tmp_path) is not None) == is_own
