"""The address that a daemon publishes, and which commands it declines or is never sent."""

import os
from pathlib import Path

import pytest

from newton.environment import read_sources
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.command_registry import IN_PROCESS_COMMANDS
from newton.runtime.daemon_address import ADDRESS_FILE, publish_address, read_address
from newton.runtime.daemon_state import DaemonState
from newton.settings import load
from tests.support import NOON

CLI = Path(__file__).parents[2] / "newton" / "runtime" / "cli"


def test_a_daemon_runs_commands_only_with_the_same_settings_and_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in os.environ if n.startswith(("NEWTON_", "OPENAI_", "PG")) or n == "DATABASE_URL"]:
        monkeypatch.delenv(name)
    frames = tmp_path / "frames"
    frames.mkdir()
    (frames / "own.yaml").write_text("name: own\n")
    monkeypatch.chdir(tmp_path)
    own = {"NEWTON_FRAMES_DIR": "frames", "NEWTON_AGENT": "ana", "OPENAI_API_KEY": "k"}
    state = DaemonState.capture(load(env=own), now=NOON)

    def differences(**env: str) -> list[str]:
        return state.list_differences(load(env=env), read_sources(env))

    monkeypatch.chdir(frames)
    same = {**own, "NEWTON_AGENT": "ben", "NEWTON_FRAMES_DIR": str(frames), "NEWTON_DATA_DIR": "elsewhere"}
    assert differences(**same) == []
    assert differences(**own) == ["frames_dir"], "relative to another folder"
    assert differences(**{**same, "OPENAI_API_KEY": "other", "NEWTON_CONTEXT_TOKENS": "900"}) == [
        "openai_api_key",
        "context_tokens",
    ]
    assert differences(**same, PGHOST="elsewhere") == ["PGHOST"]
    (frames / "own.yaml").write_text("name: own\ndescription: changed\n")
    assert differences(**same) == ["the files of frames_dir"]


def test_a_command_that_opens_a_process_of_its_own_or_uses_its_streams_is_never_sent() -> None:
    commands = [one for name, one in load_commands().items() if name not in IN_PROCESS_COMMANDS]
    functions = {inner.function for one in commands for inner in one.commands.values()}
    functions |= {one.function for one in commands if one.function}
    sent = {function.partition(":")[0] for function in functions}
    assert len(sent) > 10
    for module in sent:
        source = (CLI / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        found = [word for word in ("open_newton", "sys.std", "input(visible", "os.environ", "chdir") if word in source]
        assert found == [], module


def test_a_second_daemon_neither_overwrites_nor_deletes_the_address_of_the_first(tmp_path: Path) -> None:
    # R14
    with publish_address(tmp_path, "http://first") as is_published:
        with publish_address(tmp_path, "http://second") as is_second_published:
            address = read_address(tmp_path)
        assert address and (address.url, is_published, is_second_published) == ("http://first", True, False)
        assert read_address(tmp_path) == address
    assert read_address(tmp_path) is None


def test_the_file_of_a_killed_daemon_is_replaced(tmp_path: Path) -> None:
    # R14
    (tmp_path / ADDRESS_FILE).write_text('{"url": "http://killed", "version": "1"}')
    with publish_address(tmp_path, "http://new") as is_published:
        address = read_address(tmp_path)
    assert address and (address.url, is_published) == ("http://new", True)
    with publish_address(tmp_path, "http://new"):
        assert read_address(tmp_path) not in {None, address}, "each run of a daemon has an id"
