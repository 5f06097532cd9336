"""Which messages of a person say a change, so that a model may make it for them."""

import pytest

from newton.heart.reconciliation.citations import (
    asks_to_end,
    asks_to_lift,
    gives_other_value,
    is_beside,
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
    others = ("Mira likes Fiat.", "Theo works at Fiat.", "Mira works at night.", "Mira works at 8.", KNOWN)
    assert not any(gives_other_value(KNOWN, text) for text in others)


BESIDE = [
    ("I swim every Tuesday.", "I won't swim this Tuesday, my shoulder hurts.", ""),
    ("I work at the town library.", "I don't work this Friday, so let's plan a trip.", ""),
    ("The rowing boat lies at pier 6.", "The rowing boat does not go out today, too windy.", ""),
    ("Mein Bruder singt im Chor.", "Mein Bruder singt diese Woche nicht im Chor.", ""),
    ("My brother drives a van.", "My neighbour no longer drives a van, he has a bike.", "My brother has a bike."),
    ("My cousin Mira drives a tram.", "Her friend Jana stopped driving a tram last year.", ""),
    ("My mother takes the early bus.", "My aunt takes the late bus now.", "My mother takes the late bus now."),
    ("Mi hermana trabaja en Lugo.", "Su vecina ya no trabaja en Lugo.", ""),
    ("Nina plays the oboe.", "Nina does not only play the oboe, she also sings.", ""),
    ("The allotment grows leeks.", "The allotment doesn't just grow leeks.", "The allotment grows radishes."),
    ("I have a night shift on Fridays.", "I'd love to have no night shift on Fridays any more.", ""),
]  # fmt: skip


@pytest.mark.parametrize(("known", "line", "text"), BESIDE)
def test_what_is_said_of_one_day_of_another_or_as_more_ends_nothing(known: str, line: str, text: str) -> None:
    # S002-16
    assert not supports_change(line, text, [known])


def test_what_is_over_for_good_is_beside_nothing() -> None:
    said = ("I no longer swim every Tuesday.", "My brother's van is sold.", "My neighbour has my brother's van now.")
    assert not any(is_beside(line, "", [one]) for one in (BESIDE[0][0], BESIDE[4][0]) for line in said[:2])
    assert not is_beside(said[2], "", [BESIDE[4][0]]) and supports_change(said[0], "", [BESIDE[0][0]])


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
    once = ("Drop that rule for tonight.", "You can suggest nuts again this time.", "Vergiss die Regel heute.")
    assert not any(map(asks_to_lift, (*others, *once)))


BEES, GRAZ = ("We keep hens.", "We keep bees."), ("I live in Linz.", "I live in Graz.")
CASA = ("Vivo en Linz.", "Vivo en Graz.")
UNMOVED = (
    (BEES, "We keep bees."),
    (BEES, "We keep bees, they are lovely."),
    (("I play the harp.", "I play the flute."), "I also play the flute."),
    (("I speak Czech.", "I speak Polish."), "I speak Polish."),
    (("Wir halten Hühner.", "Wir halten Bienen."), "Wir halten Bienen."),
    (("Tenemos gallinas.", "Tenemos abejas."), "Tenemos abejas."),
    (GRAZ, "my namesake from the course moved to Graz"),
    (("Ana lives in Linz.", "Ana lives in Graz."), "my namesake from the course moved to Graz"),
    (("Ana lives in Linz.", "Ana lives in Graz."), "Meine Namensvetterin Ana ist nach Graz gezogen."),
    (("Ana lives in Linz.", "Ana lives in Graz."), "Another Ana from work lives in Graz."),
    (GRAZ, "Pedro dice que me mudé a Graz."),
    (CASA, "Mi prima cree que me mudé a Graz."),
    (CASA, "Pedro me contó que vivo en Graz."),
    (("Ich wohne in Linz.", "Ich wohne in Graz."), "Pedro erzählt, dass ich in Graz wohne."),
    (("J'habite à Linz.", "J'habite à Graz."), "Pierre raconte que j'habite à Graz."),
    (("Moro em Linz.", "Moro em Graz."), "O Pedro conta que moro em Graz."),
    (GRAZ, "My neighbour heard that I moved to Graz."),
)
MOVED = (
    (BEES, "We keep bees now instead of hens."),
    (BEES, "We gave the hens away, we keep bees."),
    (("Wir halten Hühner.", "Wir halten Bienen."), "Statt Hühnern halten wir jetzt Bienen."),
    (GRAZ, "I moved to Graz."),
    (GRAZ, "My husband and I moved to Graz."),
    (GRAZ, "Remember that I live in Graz."),
    (("Ana lives in Linz.", "Ana lives in Graz."), "Ana moved to Graz."),
    (CASA, "Te dije que vivo en Graz."),
    (CASA, "Me mudé a Graz."),
    (("My sister lives in Linz.", "My sister lives in Graz."), "My sister told me that she moved to Graz."),
    (("My dentist is Dr. Lang.", "My dentist is Dr. Moser."), "My dentist is Dr. Moser."),
    (("The rent is 640 euros.", "The rent is 690 euros."), "The rent is 690 euros."),
)


@pytest.mark.parametrize(("change", "line"), UNMOVED)
def test_another_thing_person_or_reporter_changes_nothing(change: tuple[str, str], line: str) -> None:
    # S002-16
    known, text = change
    assert is_beside(line, text, [known], user_names=["Ana"])


@pytest.mark.parametrize(("change", "line"), MOVED)
def test_what_a_person_says_of_the_thing_itself_changes_it(change: tuple[str, str], line: str) -> None:
    # S002-16
    known, text = change
    assert not is_beside(line, text, [known], user_names=["Ana"])
