"""Requests that known programs send by themselves, told from those of people by their shape."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from newton.content.ui_tasks import find_ui_task, load_known_tasks, load_ui_tasks
from newton.content.yaml_files import parse_trusted
from newton.errors import ConfigError

DATA = Path(__file__).parents[1] / "data"


@cache
def load(name: str) -> Any:
    return parse_trusted((DATA / name).read_text(encoding="utf-8"))


def find(messages: Sequence[dict[str, str]]) -> str | None:
    system = "\n".join(one["content"] for one in messages if one["role"] == "system")
    return find_ui_task((), [one["content"] for one in messages if one["role"] == "user"][-1], system=system)


def test_the_requests_of_known_programs_are_named() -> None:
    rows = load("ui_requests.yaml")["known"]
    found = [find_ui_task((), row["user"], system=row.get("system", "")) for row in rows]
    assert found == [row["kind"] for row in rows]
    assert {one.name for one in load_known_tasks()} == set(found)


def test_no_request_of_a_person_is_taken_for_that_of_a_program() -> None:
    rows = [one for one in load("ui_requests_heldout.yaml") if one["kind"] == "request"]
    assert len(rows) == 300
    assert [one for one in rows if find(one["messages"])] == []
    assert [one for one in load("ui_requests.yaml")["persons"] if find_ui_task((), one)] == []


def test_a_long_request_is_recognised_by_its_beginning_and_its_end() -> None:
    title = load("ui_requests.yaml")["known"][0]["user"]
    long = title.replace("USER:", "USER: " + "word " * 40_000)
    assert find_ui_task((), long) == "title" and find_ui_task((), f"{long} Thanks!") is None


def test_an_operator_adds_kinds_and_a_wrong_pattern_is_named(tmp_path: Path) -> None:
    own = "name: sentiment\ndescription: The help desk.\ncertain:\n  - '^rate the mood'\nsystem:\n  - '\\AYou rate'\n"
    (tmp_path / "sentiment.yaml").write_text(own, encoding="utf-8")
    tasks = load_ui_tasks(tmp_path)
    assert find_ui_task(tasks, "Rate the mood of my ticket from 1 to 5, please, I am so angry!") == "sentiment"
    assert find_ui_task(tasks, "I am so angry!", system="You rate tickets.") == "sentiment"
    assert find_ui_task(tasks, "I am so angry!") is None
    assert load_ui_tasks(tmp_path / "none") == ()
    # a wrong pattern is named with its file
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: x\ncertain:\n  - '(unclosed'\n", encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        load_ui_tasks(tmp_path)
    assert "mine.yaml" in str(wrong.value) and "RE2" in str(wrong.value)
