"""`newton --help` shows the main commands, and `newton help` has every command in one group."""

import pytest

from newton.operations.groups import GROUPS
from newton.runtime.cli import run
from newton.runtime.cli.command_index import OPERATIONS_FOLDER, load_commands
from newton.runtime.cli.command_registry import COMMAND_GROUPS, MAIN_COMMANDS


def seen(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == 0
    return capsys.readouterr().out


def rows(page: str) -> dict[str, str]:
    lines = [line.split(maxsplit=1) for line in page.split("\n") if line.startswith("  ")]
    return {name: text for name, text in lines if name != "newton"}


def test_the_first_page_has_the_main_commands_and_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    page = seen(capsys, "--help")
    assert page == seen(capsys, "-h") == seen(capsys)
    assert list(rows(page)) == [*MAIN_COMMANDS, *GROUPS]
    assert list(rows(seen(capsys, "help"))) == list(GROUPS)


def test_every_command_is_on_the_page_of_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [rows(seen(capsys, "help", group)) for group in GROUPS]
    shown = [name for page in pages for name in page]
    assert sorted(shown) == sorted(load_commands())
    assert {name: text for page in pages for name, text in page.items()} == {
        name: command.help for name, command in load_commands().items()
    }


def test_every_command_has_a_help_and_a_function() -> None:
    helps = [one.help for of in load_commands().values() for one in (of, *of.commands.values())]
    assert [text for text in helps if not text.endswith(".") or text[0].islower() or len(text) < 10] == []
    assert [name for name, one in load_commands().items() if bool(one.function) == bool(one.commands)] == []
    assert all(load_commands()[name].commands for name in COMMAND_GROUPS)


def test_the_operations_of_every_package_are_in_a_group() -> None:
    folders = {path.parent.name for path in OPERATIONS_FOLDER.glob("*/__init__.py")}
    assert folders == {package for group in GROUPS.values() for package in group.packages}


def test_help_of_a_command_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Usage: newton recall" in seen(capsys, "help", "recall")
    assert "Usage: newton censors relax" in seen(capsys, "help", "censors", "relax")
    assert "Usage: newton decisions show" in seen(capsys, "help", "decisions", "show")
    assert run(["help", "recal"]) == 2
    assert "`newton help`" in capsys.readouterr().err
