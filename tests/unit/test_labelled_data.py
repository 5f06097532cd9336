"""The labelled sets for changes of facts are whole: written apart from the code, without overlap, in the agreed mix."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from newton.content.yaml_files import parse_trusted

DATA = Path(__file__).parents[1] / "data"
EXPECTED = {
    "announced": "update",
    "plain_same": "update",
    "plain_other": "update",
    "compatible": "compatible",
    "implicit": "conflict",
}


def load(name: str) -> Any:
    return parse_trusted((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["updates_dev", "updates_heldout", "updates_train"])
def test_each_pair_has_the_label_of_its_group(name: str) -> None:
    assert [pair["id"] for pair in load(name) if EXPECTED[pair["group"]] != pair["expect"]] == []


def test_the_measured_sets_are_in_the_agreed_mix() -> None:
    counts = Counter(pair["group"] for name in ("updates_dev", "updates_heldout") for pair in load(name))
    assert counts == {"announced": 100, "plain_same": 60, "plain_other": 40, "compatible": 150, "implicit": 40}
    conversations = load("conversations")
    assert [len(one["turns"]) for one in conversations] == [15] * 20
    assert all(1 < one["change_at"] <= 15 for one in conversations)
    assert len(set(load("unknown_questions"))) == 100
    weeks = {one["id"]: one["week"] for one in load("everyday_statements")}
    replaced = [
        (one["week"], weeks[one["replaced_by"]]) for one in load("everyday_statements") if one.get("replaced_by")
    ]
    assert (len(weeks), len(replaced)) == (60, 25)
    assert all(week <= later for week, later in replaced)


@pytest.mark.slow
def test_no_held_out_statement_is_among_those_to_learn_from() -> None:
    seen = {
        pair[side] for name in ("updates_dev", "updates_train") for pair in load(name) for side in ("older", "newer")
    }
    held_out = {pair[side] for pair in load("updates_heldout") for side in ("older", "newer")}
    assert len(held_out) == 260
    assert held_out & seen == set()


@pytest.mark.slow
def test_no_held_out_message_is_among_those_that_the_change_reader_learns_from() -> None:
    chats = [pair for letter in "abcdefhi" for pair in load(f"updates_chat_{letter}")]
    seen = {pair[side] for pair in chats for side in ("older", "newer")}
    newer = {pair["newer"] for pair in load("updates_heldout")}
    lives = {told[1] for life in load("everyday_lives_heldout") for told in life["told"].values()}
    assert (len(chats), len(lives)) == (4_290, 312)
    assert (newer | lives) & seen == set()
    # common sentences, which two authors wrote; what follows them differs
    older = {pair["older"] for pair in load("updates_heldout")}
    assert older & seen == {"My phone is a Pixel 6.", "The API allows 100 requests a minute."}
