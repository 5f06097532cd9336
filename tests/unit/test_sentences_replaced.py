"""Which sentences in a person's words give way to the facts that a model made of them."""

from uuid import UUID

import pytest

from newton.heart.reconciliation.line_statements import LineStatement, find_resolved
from tests.unit.reconciling import check, make_batch

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
