"""Requests that programs send by themselves, told from those of people."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from newton.content.ui_tasks import UiTask, find_ui_task, load_ui_tasks
from newton.errors import ConfigError

REQUESTS = yaml.safe_load((Path(__file__).parents[1] / "data" / "ui_requests.yaml").read_text(encoding="utf-8"))
TITLE = "Create a short title for the conversation. Reply with the title only."


def find(request: dict[str, Any]) -> str | None:
    found = find_ui_task(load_ui_tasks(), request["user"], system=request.get("system", ""))
    return found and found.name


def test_requests_of_programs_are_found() -> None:
    missed = [request["user"] for request in REQUESTS["ui_tasks"] if find(request) is None]
    assert len(missed) <= 2, missed
    assert {request["shape"] for request in REQUESTS["ui_tasks"]} == {task.name for task in load_ui_tasks()}


def test_requests_of_people_that_look_alike_are_not() -> None:
    taken = {request["user"]: kind for request in REQUESTS["person"] if (kind := find(request))}
    assert taken == {}


def test_a_system_message_counts_only_if_it_is_short_and_before_the_first_message() -> None:
    tasks = load_ui_tasks()
    assert find_ui_task(tasks, "Which yeast is best?", system=TITLE)
    assert find_ui_task(tasks, "Which yeast is best?", system=TITLE, earlier=["Hello.", "Hi."]) is None
    assert find_ui_task(tasks, "Which yeast is best?", system=f"{'You help bakers. ' * 40}{TITLE}") is None


def test_an_operator_adds_and_replaces_kinds(tmp_path: Path) -> None:
    own = "name: sentiment\ndescription: The help desk.\ncertain:\n  - '^rate the mood'\n"
    (tmp_path / "sentiment.yaml").write_text(own, encoding="utf-8")
    (tmp_path / "title.yaml").write_text("name: title\ndescription: No titles here.\n", encoding="utf-8")
    tasks = load_ui_tasks(tmp_path)
    found = find_ui_task(tasks, "Rate the mood of ticket 12 from 1 to 5.")
    assert isinstance(found, UiTask) and found.name == "sentiment"
    assert find_ui_task(tasks, "Which yeast is best?", system=TITLE) is None


def test_a_wrong_pattern_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: x\ncertain:\n  - '(unclosed'\n", encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        load_ui_tasks(tmp_path)
    assert "mine.yaml" in str(wrong.value) and "RE2" in str(wrong.value)
