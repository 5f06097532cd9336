"""What is told again in other words is the same, and what only looks alike is not."""

import pytest

from newton.heart.facts.restatements import compare_restated

TOLD_AGAIN = [
    ("I live in Graz.", "My home is in Graz, as I said."),
    ("My dentist is Dr Claes.", "Dr Claes is still my dentist, as you know."),
    ("I am allergic to nuts.", "I have a nut allergy."),
    ("We have a dog named Bruno.", "Our dog is called Bruno."),
    ("Our dog is Bruno.", "Our dog's name is Bruno."),
    ("My wife is from Porto.", "My wife comes from Porto."),
    ("I take metformin twice a day.", "I take metformin two times a day."),
    ("I drive a Skoda.", "My car is a Skoda."),
    ("I live with my mother.", "My mother and I live together."),
    ("I hate coriander.", "I can't stand coriander."),
    ("Ich wohne in Graz.", "Wie gesagt, ich lebe immer noch in Graz."),
    ("Me llamo Ana.", "Mi nombre es Ana."),
    ("J'habite à Lyon.", "Je vis toujours à Lyon."),
    ("Abito a Roma.", "Vivo ancora a Roma."),
    ("Moro em Lisboa.", "Vivo em Lisboa."),
    ("Ik woon in Gent.", "Ik woon nog steeds in Gent."),
    ("Я живу в Москве.", "Как я уже говорил, я живу в Москве."),
    ("我住在北京。", "我还是住在北京。"),
    ("私は東京に住んでいます。", "私は今も東京に暮らしています。"),
]
LOOK_ALIKE = [
    ("I sleep well.", "I sleep."),
    ("Our dog is Bruno.", "Our cat is Bruno."),
    ("Our dog is Bruno.", "My sister's dog is Bruno."),
    ("I have a nut allergy.", "My son has a nut allergy."),
    ("I drive a Skoda.", "My old car was a Skoda."),
    ("I live in Graz.", "I used to live in Graz, as I said."),
    ("I swim every Monday.", "I swim every Tuesday."),
    ("I am allergic to nuts.", "I am not allergic to nuts, as I said."),
    ("We have a dog named Bruno.", "We have a dog named Rex."),
    ("Ich wohne in Graz.", "Ich lebe in Linz."),
    ("Moro em Lisboa.", "Não moro em Lisboa."),
    ("我住在北京。", "我还是住在上海。"),
]


@pytest.mark.parametrize(("known", "new"), TOLD_AGAIN)
def test_what_is_told_again_in_other_words_is_the_same(known: str, new: str) -> None:
    # S002-16
    assert {compare_restated(new, known, cosine=0.8).verdict, compare_restated(known, new, cosine=0.8).verdict} == {
        "same"
    }


@pytest.mark.parametrize(("known", "new"), LOOK_ALIKE)
def test_what_only_looks_alike_is_not_the_same(known: str, new: str) -> None:
    # S002-16
    assert compare_restated(new, known, cosine=0.97).verdict != "same"
