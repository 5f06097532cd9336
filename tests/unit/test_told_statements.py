"""Statements worth remembering in everyday messages, selected without a model."""

from pathlib import Path

import pytest
import yaml

from newton.heart.statements.told_statements import DECIDED, select_statements

DATA = Path(__file__).parents[1] / "data"
MESSAGES = yaml.safe_load((DATA / "chat_messages.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("half", ["dev", "held"])
def test_facts_of_everyday_messages_are_found_and_little_else(half: str) -> None:
    # the figures are published in docs/benchmarks.md
    pairs = [(m, {s.content for s in select_statements(m["text"])}) for m in MESSAGES if m["half"] == half]
    selected = sum(len(found) for _, found in pairs)
    right = sum(len(found & set(m.get("facts", ()))) for m, found in pairs)
    assert right / selected >= 0.95
    assert right / sum(len(m.get("facts", ())) for m in MESSAGES if m["half"] == half) >= 0.9


def test_facts_of_messages_by_another_author_are_found() -> None:
    # held out: the rules were never adjusted to these messages; the figures are published in docs/benchmarks.md
    messages = yaml.safe_load((DATA / "chat_messages_heldout.yaml").read_text(encoding="utf-8"))
    pairs = [({strip_end(x) for x in m["facts"]}, select_contents(m["text"])) for m in messages]
    right, selected = sum(len(a & b) for a, b in pairs), sum(len(b) for _, b in pairs)
    assert right / selected >= 0.9
    assert right / sum(len(a) for a, _ in pairs) >= 0.6


def select_contents(text: str) -> set[str]:
    return {strip_end(one.content) for one in select_statements(text)}


def strip_end(text: str) -> str:
    return text.strip().rstrip(".!").lower()


def test_a_statement_is_about_its_speaker_or_the_name_it_begins_with() -> None:
    assert select_statements("I moved to Bergen.", speaker="Ana")[0].subject == "Ana"
    assert select_statements("I moved to Bergen.")[0].subject == "user"
    assert select_statements("Carla Jensen works at Equinor.")[0].subject == "Carla Jensen"


@pytest.mark.parametrize(
    "text",
    [
        "We decided to use Redis for the sessions.",
        "I've decided against a second dog.",
        "Lena and I agreed on Thursday for the handover.",
    ],
)
def test_a_decision_is_a_statement_of_one(text: str) -> None:
    # S002-17
    assert [(one.content, one.attribute) for one in select_statements(text)] == [(text, DECIDED)]


@pytest.mark.parametrize(
    "text",
    [
        "I agree with Bob.",
        "I can't decide between the two.",
        "My train leaves in 10 minutes.",
        "> I live in Rome\nIs that grammatical?",
        "Please fix: I lives in Rome.",
        "Imagine I live on the moon.",
        "I moved the file to the archive.",
        "The build is now green.",
        "The meeting should move to Friday.",
        "The page now shows error 404.",
        "x" * 100_000,
    ],
)
def test_what_only_looks_like_a_statement_is_not_selected(text: str) -> None:
    assert select_statements(text) == []


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I am allergic to hazelnuts, so never suggest a recipe with hazelnuts.", "I am allergic to hazelnuts"),
        ("We are in Ghent since May, so please always use Celsius.", None),
        ("My daughter Mia is coeliac, so always check the ingredients.", "My daughter Mia is coeliac"),
    ],
)
def test_the_reason_of_an_order_is_a_statement_without_the_order(text: str, content: str | None) -> None:
    # S002-17
    assert [one.content for one in select_statements(text)] == ([content] if content else [])


@pytest.mark.parametrize(
    "text",
    [
        "The rent was raised to 950 euros.",
        "The swimming lessons moved: from now on every Thursday.",
        "The standup moved to ten.",
        "The dentist appointment was rescheduled to 4 May.",
    ],
)
def test_an_announced_change_of_a_thing_is_a_statement(text: str) -> None:
    # S002-17
    assert [one.content for one in select_statements(text)] == [text]
