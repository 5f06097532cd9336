"""The name by which a wish says to call the user is known in the same answer, if the user's line has it."""

import pytest

from tests.unit.reconciling import check, make_batch


@pytest.mark.parametrize(
    "wish",
    ["Call the user Nacho, not Ignacio.", "The user wants to be called Nacho.", "Address the user as Nacho."],
)
def test_a_name_by_which_the_user_wants_to_be_called_is_known_in_the_same_answer(wish: str) -> None:
    lines = ["Nora: Only the tax office says Ignacio. Nacho will do nicely.", "Nora: I run in the old riverbed."]
    batch = make_batch(lines)
    told, run = "1 wish: " + wish, "2 add: Nacho runs in the old riverbed."
    answer = check(batch, run, told)
    assert [one.text for one in answer.kept] == [wish, "Nacho runs in the old riverbed."]
    assert answer.user_names == ("Nacho", "Nora")


@pytest.mark.parametrize(
    ("line", "wish"),
    [
        ("Nora: Please keep it short.", "Call the user Rex."),
        ("Nora: Sum this up: 'Nacho will do nicely, says the mail.'", "Call the user Nacho."),
        ("Ben: Nacho will do nicely.", "Call the user Nacho."),
    ],
)
def test_a_name_that_the_user_does_not_give_is_not_theirs(line: str, wish: str) -> None:
    assert check(make_batch([line]), f"1 wish: {wish}").user_names == ("Nora",)
