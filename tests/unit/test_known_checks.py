"""What an answer merges, drops, replaces and calls the user: known facts, fragments, sentences and names."""

from dataclasses import replace
from uuid import UUID

import pytest

from newton.heart.reconciliation.line_statements import LineStatement, find_resolved
from tests.unit.reconciling import check, make_batch

RENT = (
    "F 2026-10-10 Until the move Nora rents a place in Ruzafa for 950 euros a month and can hear the neighbours.",
    "F 2026-10-19 The landlord of Nora's rented place lets her stay until 16 January 2027 but takes 1,020 euros.",
)
MERGED = (
    "The landlord of the place in Ruzafa that Nora rents, where she can hear the neighbours, lets her stay until"
    " 16 January 2027 but takes 1,020 euros instead of 950."
)
HELLO = "Nora: Hello there."


def test_facts_on_one_thing_are_merged_into_what_holds() -> None:
    (kept,) = check(make_batch([HELLO], RENT), f"0 update F1,F2: {MERGED}").kept
    assert (kept.op, kept.line, kept.text) == ("update", None, MERGED)
    assert [one.label for one in kept.known] == ["F1", "F2"]
    # nothing is merged beside foreign text or what a line changes
    lines = [HELLO, "foreign: Merge the facts on the rent."]
    assert not check(make_batch(lines, RENT), f"0 update F1,F2: {MERGED}").kept
    # what a line changes is not merged in the same answer
    batch = make_batch(["Nora: I no longer rent the place in Ruzafa."], RENT)
    answer = check(batch, f"0 update F1,F2: {MERGED}", "1 end F1")
    assert [one.op for one in answer.kept] == ["end"]
    assert [one.reason for one in answer.dropped] == ["repeated"]
    batch = make_batch([HELLO], ("F 2026-10-07 Maaike is a vet for salmon.", "F 2026-10-07 Fish doctor."))
    vouched = replace(batch, known=tuple(replace(one, is_vouched=True) for one in batch.known))
    assert not check(vouched, "0 drop F2").kept


@pytest.mark.parametrize(
    ("known", "text"),
    [
        pytest.param(RENT, MERGED.replace("16 January", "January"), id="loses a day"),
        pytest.param(RENT, MERGED.replace(" instead of 950", ""), id="loses an amount"),
        pytest.param(RENT, MERGED.replace(" in Ruzafa", ""), id="loses a name"),
        pytest.param(RENT, MERGED.replace("1,020", "1,200"), id="another number"),
        pytest.param(RENT, MERGED.replace("Ruzafa", "Ruzafa near Xirivella"), id="another name"),
        pytest.param(RENT, MERGED.replace("takes", "secretly takes"), id="another word"),
        pytest.param(RENT, MERGED.replace("lets her stay", "does not let her stay"), id="denied"),
        pytest.param(RENT, "", id="no text"),
        pytest.param(
            ("F 2026-10-01 Nora's brother Tom is 8 years old.", "F 2026-10-02 Nora's brother Ben is 9 years old."),
            "Nora's brother Tom is 9 and her brother Ben 8 years old.",
            id="mixed up",
        ),
        pytest.param(
            ("F 2026-10-01 Nora plays the cello.", "F 2026-10-02 Nora drives a green car."),
            "Nora plays the cello and drives a green car.",
            id="unrelated",
        ),
        pytest.param(
            ("F 2026-10-01 Nora is allergic to walnuts.", "F 2026-10-02 Nora is allergic to hazelnuts and walnuts."),
            "Nora is allergic to hazelnuts and walnuts.",
            id="safety",
        ),
        pytest.param(RENT[:1], MERGED, id="one"),
    ],
)
def test_a_merge_that_loses_adds_or_mixes_up_something_is_dropped(known: tuple[str, ...], text: str) -> None:
    labels = ",".join(f"F{n}" for n in range(1, len(known) + 1))
    answer = check(make_batch([HELLO], known), f"0 update {labels}: {text}" if text else f"0 update {labels}")
    assert not answer.kept and len(answer.dropped) == 1


@pytest.mark.parametrize("op", ["drop F2", "confirm F1,F2"])
def test_a_fragment_that_says_nothing_is_dropped(op: str) -> None:
    known = ("F 2026-10-07 Maaike is a vet for salmon.", "F 2026-10-07 Fish doctor.")
    (kept,) = check(make_batch([HELLO], known), f"0 {op}").kept
    assert kept.op == "not_asserted" and kept.line is None
    assert [one.text for one in kept.known] == ["Fish doctor."]


@pytest.mark.parametrize(
    "text",
    [
        "Anna lives in Graz.",
        "Allergic to walnuts.",
        "Green Skoda.",
        "At 58.",
        "No sugar in my coffee.",
        "Two kids, one dog.",
        "A garden behind the house with old pear trees.",
    ],
)
@pytest.mark.parametrize("op", ["drop F2", "confirm F1,F2"])
def test_a_fact_is_not_dropped_as_a_fragment(op: str, text: str) -> None:
    known = ("F 2026-10-01 Maaike is a vet for salmon.", f"F 2026-10-07 {text}")
    assert not check(make_batch([HELLO], known), f"0 {op}").kept


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


# A sentence in a person's words, and what a model that names it as said better makes of it.
REPLACED = [
    line.split(" <- ")
    for line in """
No no, the 22nd, Thursday. <- Mia sees Dr. Weiss on Thursday 22 October 2026 at 15:30.
Nein nein, Donnerstag. <- Mia ist am Donnerstag, 22. Oktober 2026, bei Dr. Weiss.
No, el jueves 22. <- Mia ve al Dr. Weiss el jueves 22 de octubre de 2026.
Non, jeudi 22. <- Mia voit le Dr Weiss le jeudi 22 octobre 2026.
12th* saturday. <- Zanele lands on Saturday 12 December 2026.
My sister Ania flies in from Leeds on 28 December. <- Nora's sister Ania flies in from Leeds on 28 December 2026.
Mi hermana Ania llega de Leeds el 28 de mayo. <- Ania, hermana de Nora, llega de Leeds el 28 de mayo de 2026.
She wants 35 and not 30. <- Lena takes Mia for 35 zł an hour.
Lena will 35, nicht 30. <- Lena nimmt 35 zł die Stunde.
Our apple tree stands there like a Bavarian. <- Nora's apple tree stands in the yard.
""".strip().splitlines()
]
KEPT = [
    line.split(" <- ")
    for line in """
She wants 35, and 50 at night. <- Lena takes Mia for 35 zł an hour.
No no, the 22nd, and Olek comes too. <- Mia sees Dr. Weiss on Thursday 22 October 2026.
He is a plumber. <- Tom lives in Graz.
The 11th, at Ringstraße 9. <- Closing is on Friday 11 December 2026.
My sister Ania flies in from Leeds on 28 December with Bo. <- Nora's sister Ania flies in on 28 December 2026.
No sugar for Bo. <- Tove takes no sugar.
""".strip().splitlines()
]


@pytest.mark.parametrize(("sentence", "text"), [*REPLACED, *KEPT])
def test_a_sentence_gives_way_to_a_fact_that_has_all_its_details_and_else_stays(sentence: str, text: str) -> None:
    stated, names = LineStatement(UUID(int=1), sentence), ["Nora"]
    found = find_resolved([stated], [text], named=[stated.memory_id], user_names=names)
    is_replaced = [sentence, text] in REPLACED
    assert bool(found) == is_replaced
    known = [f"F 2026-02-10 {text}", f"F 2026-06-08 {sentence}"]
    assert bool(check(make_batch(["Nora: hello"], known), "0 confirm F1,F2").kept) == is_replaced
    assert not find_resolved([stated], ["Mia learns the cello."], named=[stated.memory_id], user_names=names)


@pytest.mark.parametrize(
    "sentence", ["Fish doctor.", "My only one, yes.", "For salmon, Bo too.", "She dives for salmon."]
)
def test_a_fragment_without_details_gives_way_to_the_fact_that_names_it(sentence: str) -> None:
    stated = LineStatement(UUID(int=1), sentence)
    found = find_resolved([stated], ["Mia is a veterinarian."], named=[stated.memory_id], user_names=[])
    assert bool(found) == (sentence in ("Fish doctor.", "My only one, yes."))


@pytest.mark.parametrize(
    ("sentence", "text", "ends"),
    [
        (
            "My Nokia fell down the stairs, three floors, to bits.",
            "Nora has a Pixel, as her Nokia fell down the stairs.",
            True,
        ),
        ("My Nokia fell down the stairs, 3 floors, to bits.", "Nora's Nokia fell down the stairs in May.", False),
        ("We drive to the lake, the three of us, as it's a holiday.", "Nora and her sons drive to the lake.", True),
        (
            "It's lengths in the pool, Mondays, among ladies of seventy.",
            "On Mondays Nora swims lengths in a pool.",
            True,
        ),
        ("I do the sound at the club, i.e. I mix, and load-in is at five.", "Nora does the sound at the club.", False),
        ("Mi móvil cayó por la escalera, tres pisos.", "El móvil de Nora cayó por la escalera.", False),
    ],
)
def test_a_named_sentence_may_lose_a_number_in_words_that_adds_to_what_the_fact_says(
    sentence: str, text: str, ends: bool
) -> None:
    stated = LineStatement(UUID(int=1), sentence)
    assert bool(find_resolved([stated], [text], named=[stated.memory_id], user_names=["Nora"])) == ends
    assert not find_resolved([stated], [text], named=[], user_names=["Nora"])


def test_a_weekday_of_a_known_fact_and_a_number_of_one_that_the_answer_ends_may_be_said_again() -> None:
    known = ["F 2026-06-01 Nora has a 2012 Hilux.", "F 2026-06-01 Nora's round is on Monday and Friday at 6."]
    batch = make_batch(["Nora: The Hilux is sold. The round is at 7 now."], known)
    sold, moved = "Nora sold her 2012 Hilux.", "Nora's round is on Monday and Friday at 7."
    kept = check(batch, "1 end F1", f"1 add: {sold}", f"1 update F2: {moved}").kept
    assert [one.text for one in kept] == ["", sold, moved]
    assert [one.text for one in check(batch, f"1 add: {sold}").kept] == ["The Hilux is sold."]
    (kept_words,) = check(batch, f"1 update F2: {moved.replace('Friday', 'Sunday')}").kept
    assert kept_words.text == "The round is at 7 now."
