"""Text that a person pastes: its form, and the words that present it."""

import pytest

from newton.heart.reconciliation.quoted_text import split_own_words


@pytest.mark.parametrize(
    "told",
    [
        "this came from the council what is it\n\nTHE NOTICE",
        "Angus next door sent me this what does he want\n\nTHE NOTICE",
        "Das kam heute mit der Post, was heißt das\n\nTHE NOTICE",
        "me llegó esto, ¿qué quieren?\n\nTHE NOTICE",
        "What do they want?\n\nDear members, THE NOTICE",
        "What do they want?\n\nFrom: Martin Feeney\nDear members, THE NOTICE",
    ],
)
def test_text_that_a_first_paragraph_presents_is_not_the_persons_own(told: str) -> None:
    notice = (
        "I am the owner of the pier and all boats have to be moved by the fifth of May because we dredge the harbour."
    )
    assert "dredge" in split_own_words(told.replace("THE NOTICE", notice)).foreign


def test_what_a_person_tells_in_paragraphs_is_their_own() -> None:
    told = "Good evening. This week was long.\n\nMy wife came home on Tuesday, the boys were with my mother"
    told += ", and the roof of the cottage is finished, which I would not have thought possible in May."
    assert split_own_words(told).foreign == ""
