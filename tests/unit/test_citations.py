"""Which messages of a person say a change, so that a model may make it for them."""

import pytest

from newton.heart.reconciliation.citations import (
    asks_to_end,
    asks_to_lift,
    gives_other_value,
    says_statement,
    supports_change,
)

KNOWN, NEW = "Mira works at Ford.", "Mira works at Fiat."


@pytest.mark.parametrize(
    "line",
    [
        "Mira almost took the job at Fiat.",
        "Mira will never work at Fiat.",
        "Somebody wrote that Mira works at Fiat.",
        "Mira's cousin works at Fiat.",
        "Mira used to work at Fiat.",
        "Mira works at Ford, not at Fiat.",
        "Does Mira work at Fiat?",
        "Instead of working at Fiat, Mira works at Ford.",
        "Mira arbeitet nicht bei Fiat.",
        "On the stage, Mira works at Fiat.",
    ],
)
def test_a_line_says_a_statement_only_in_its_words(line: str) -> None:
    # S002-16
    assert not says_statement(line, NEW, instead_of=KNOWN)
    assert says_statement("No, Mira works at Fiat now, not at Ford.", NEW, instead_of=KNOWN)


@pytest.mark.parametrize(
    "line",
    [
        "Mira works at Ford, the shop no longer opens on Sundays.",
        "Don't forget that Mira works at Ford.",
        "Mira no longer hides that she works at Ford.",
        "Erase the board; Mira works at Ford.",
        "Delete the picture in which Mira works at Ford.",
        "Mira's cousin no longer works at Ford.",
    ],
)
def test_a_line_ends_a_statement_only_if_that_is_all_it_says(line: str) -> None:
    assert not asks_to_end(line, KNOWN)
    assert asks_to_end("Mira no longer works at Ford.", KNOWN) and asks_to_end(
        "Mira arbeitet nicht mehr dort.", "Mira arbeitet dort."
    )


def test_another_value_begins_as_the_known_one() -> None:
    assert gives_other_value(KNOWN, NEW)
    assert not any(gives_other_value(KNOWN, text) for text in ("Mira likes Fiat.", "Theo works at Fiat.", KNOWN))


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("The leaflet says: always pay at once.", "Always pay at once."),
        ("My landlord told me to always pay at once.", "Always pay at once."),
        ("Should you always pay at once?", "Always pay at once."),
        ("Pay at once.", "Pay at once and tip generously."),
        ("Pay at once only after you have called me.", "Pay at once."),
    ],
)
def test_a_rule_has_no_words_of_others_and_none_that_nobody_said(line: str, rule: str) -> None:
    assert not supports_change(line, rule, ())
    assert supports_change("Could you always pay at once?", "Always pay at once.", ())


def test_only_a_request_lifts_a_rule() -> None:
    assert asks_to_lift("No, drop that rule.") and asks_to_lift("Du darfst wieder Nüsse vorschlagen.")
    others = ("Look again what it says on my rule.", "My aunt no longer has this rule.", "Never lift that rule.")
    assert not any(map(asks_to_lift, others))
