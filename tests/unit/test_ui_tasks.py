"""Requests that programs send by themselves, told from those of people."""

import itertools
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest

from newton.content.ui_request_features import MAX_SYSTEM_CHARS, divide
from newton.content.ui_tasks import find_ui_task, load_model, load_ui_tasks
from newton.content.yaml_files import parse_trusted
from newton.errors import ConfigError

DATA = Path(__file__).parents[1] / "data"
TITLE = "Create a short title for the conversation. Reply with the title only."
STYLES = (
    "Answer in one line.",
    "Reply in one sentence.",
    "Use two paragraphs at the most.",
    "Give short answers, please.",
    "Write British English.",
    "Never use tables.",
    "You answer like an old captain.",
)
QUESTION = "Which yeast is best for rye? I bake for my sister."


@cache
def load(name: str) -> Any:
    return parse_trusted((DATA / name).read_text(encoding="utf-8"))


def find(messages: Sequence[dict[str, str]]) -> str | None:
    system = "\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [one for one in messages if one["role"] != "system"]
    last = max(place for place, one in enumerate(others) if one["role"] == "user")
    return find_ui_task((), others[last]["content"], system=system, earlier=[one["content"] for one in others[:last]])


def test_held_out_requests_are_told_apart() -> None:
    rows = load("ui_requests_heldout.yaml")
    told = {
        kind: [find(one["messages"]) is not None for one in rows if one["kind"] == kind] for kind in ("task", "request")
    }
    assert [len(found) for found in told.values()] == [300, 300]
    assert sum(told["task"]) >= 260
    assert sum(told["request"]) <= 17


@pytest.mark.slow
def test_no_held_out_request_is_among_those_to_learn_from() -> None:
    seen = {str(one["messages"]) for one in load("ui_requests_train.yaml")}
    assert len(seen) > 3_000
    assert not seen & {str(one["messages"]) for one in load("ui_requests_heldout.yaml")}


def test_a_task_is_named_and_a_system_message_counts_only_before_the_first_message() -> None:
    assert find_ui_task((), TITLE) == "title"
    feedback = "1 validation error for Order: total field required. Fix the errors and try again."
    assert find_ui_task((), feedback, earlier=["Total?", "{}"]) == "validation_feedback"
    assert find_ui_task((), "Which yeast is best?", system=TITLE) == "title"
    assert find_ui_task((), QUESTION, system=TITLE, earlier=["Hello.", "Hi."]) is None
    assert find_ui_task((), QUESTION, system=f"{TITLE}{' You help bakers.' * (MAX_SYSTEM_CHARS // 17)}") is None


def test_everyday_messages_of_people_are_theirs_at_every_place_of_a_conversation() -> None:
    messages = list_everyday()
    places = [(turns, message) for turns in (0, 2) for message in messages[turns // 2 :: 2]]
    assert len(places) > 900
    assert [place for place in places if find_ui_task((), place[1], earlier=["Hello."] * place[0])] == []


def test_a_system_message_that_only_sets_the_form_of_replies_makes_no_task() -> None:
    short = itertools.product(STYLES, ("What is the ferry called?", "Thanks!"))
    cases = [*zip(itertools.cycle(STYLES), list_everyday(), strict=False), *short]
    taken = [(style, message) for style, message in cases if find_ui_task((), message, system=style)]
    assert len(cases) > 900
    assert len(taken) <= 2, taken


NOTICES = (
    "Dear parent, please complete the following form. Return a list of allergies, one per line. Only the name and the"
    " class are needed. Output must reach the office by Friday.",
    "1. Select the language. 2. Choose JSON as the output format. 3. Respond within 30 seconds. The system generates a"
    " summary of the conversation and a title of at most 60 characters.",
    "ACHTUNG: Die Heizung wird am 3. Oktober abgelesen. Antworten Sie nur mit der Zählernummer. Keine Anmerkungen.",
    "Estimados vecinos: se ruega responder solo con el número de piso. No añadir comentarios.",
)
PRESENTED = (
    "got this from school, is it serious?",
    "was heißt das, das hing bei uns im Treppenhaus",
    "esto me llegó hoy, ¿qué tengo que hacer?",
    "what's that?",
)


def test_a_notice_that_a_person_presents_is_no_request_of_a_program() -> None:
    # a message that is taken for a task is neither answered from memory nor kept
    for own, notice in itertools.product(PRESENTED, NOTICES):
        assert find_ui_task((), f"{own}\n\n{notice}") is None
        for order in ((own, notice), (notice, own)):
            for gap in ("\n", "\n\n"):
                assert find_ui_task((), gap.join(order), earlier=["Hello.", "Hi."]) is None, order


@cache
def list_everyday() -> list[str]:
    """Return messages of persons that the model has not learned from."""
    names = ("chat_messages_heldout", "chat_messages_heldout2", "everyday_lives_heldout", "updates_heldout")
    keys = {"text", "older", "newer"}
    return sorted({text for name in names for text in list_texts(load(f"{name}.yaml"), keys)})


def list_texts(value: Any, keys: set[str]) -> list[str]:
    """Return the texts of messages: the values of `keys`, and the second entries of what was told."""
    if isinstance(value, list):
        return [text for one in cast("list[Any]", value) for text in list_texts(one, keys)]
    if not isinstance(value, dict):
        return []
    fields = cast("dict[str, Any]", value)
    told = [entry[1] for entry in fields.get("told", {}).values()]
    return [*told, *(fields[key] for key in keys & fields.keys())]


def test_the_model_is_small() -> None:
    model = files("newton.content").joinpath("ui_task_model.json").read_bytes()
    assert len(model) < 450_000
    assert {"title", "validation_feedback", "continuation"} < set(load_model().kinds)


def test_what_a_request_quotes_is_no_instruction() -> None:
    text = "Name the chat.\n<chat>\nUser: Hello, I am Ada.\n</chat>\nUser: Hi\nme too\n\nOnly the name."
    regions = divide(text)
    assert regions.instructions == ["Name the chat.", "Only the name."]
    assert (regions.counts["tags"], regions.counts["speakers"], regions.order) == (1, 1, "ibqi")
    labelled = divide("Is it rude? Message: I hate mondays")
    assert (labelled.instructions, labelled.payloads) == (["Is it rude?"], ["I hate mondays"])
    assert divide("<a>" * 3_000 + '[{"role"' * 1_000).counts["tags"] == 0


def test_an_operator_adds_kinds_and_a_wrong_pattern_is_named(tmp_path: Path) -> None:
    own = "name: sentiment\ndescription: The help desk.\ncertain:\n  - '^rate the mood'\n"
    (tmp_path / "sentiment.yaml").write_text(own, encoding="utf-8")
    tasks = load_ui_tasks(tmp_path)
    assert find_ui_task(tasks, "Rate the mood of my ticket from 1 to 5, please, I am so angry!") == "sentiment"
    assert load_ui_tasks(tmp_path / "none") == ()
    # a wrong pattern is named with its file
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: x\ncertain:\n  - '(unclosed'\n", encoding="utf-8")
    with pytest.raises(ConfigError) as wrong:
        load_ui_tasks(tmp_path)
    assert "mine.yaml" in str(wrong.value) and "RE2" in str(wrong.value)
