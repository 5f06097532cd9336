"""What an older statement says besides what a newer one changes. The sentences were written before the rules."""

import pytest

from newton.heart.statements.clauses import list_untouched


@pytest.mark.parametrize(
    ("older", "newer", "rest"),
    [
        (
            "Marta is a nurse on ward 4 and moves to nights on Monday.",
            "Marta moves to nights on Wednesday.",
            ["a nurse"],
        ),
        ("My van is white, does 28 mpg and is insured until March.", "The van is insured until June.", ["white", "28"]),
        (
            "I have two sisters, Ana in Porto and Rita in Leeds.",
            "Rita lives in York.",
            ["two sisters", "Ana is in Porto"],
        ),
        ("The oven runs at 240 degrees and the mixer is out for repair.", "The mixer is back from repair.", ["240"]),
        (
            "Mr Kahn's boiler is a Vaillant and his service is due in May.",
            "Mr Kahn's service is due in July.",
            ["Vaill"],
        ),
        ("Class 7b has 28 pupils and meets in room 12.", "Class 7b meets in room 15 from now on.", ["28 pupils"]),
        ("The Smiths' hedge is 30 m long and gets cut every October.", "The hedge gets cut in September.", ["30 m"]),
        (
            "The flat on Mill Road is let to Jonas and the rent is 900.",
            "The rent for Mill Road is 950.",
            ["let to Jonas"],
        ),
        ("Mrs Oduya comes every six weeks and has an ammonia allergy.", "Mrs Oduya comes monthly.", ["ammonia"]),
        ("We milk 60 cows and the milk goes to Arla.", "The milk goes to Müller from April.", ["60 cows"]),
        ("Rehearsal is on Tuesday at 7 and Lena has the key.", "Omar has the key.", ["Tuesday at 7"]),
        ("Invoices go out on the 1st and Pia checks them before.", "Pia no longer checks invoices.", ["on the 1st"]),
        (
            "My mum is 82, lives in Bath and has a carer called Joy.",
            "My mum has a carer called Tess.",
            ["82", "in Bath"],
        ),
        ("Anna drives the Luton and checks the tyres on Fridays.", "Ben checks the tyres now.", ["Anna drives the"]),
        ("Wanjiru is a nurse with a caseload out of Govanhill.", "Her team moved from Govanhill.", ["is a nurse"]),
    ],
)
def test_the_clauses_that_nothing_is_said_of_stay(older: str, newer: str, rest: list[str]) -> None:
    found = list_untouched(older, newer)
    assert len(found) == len(rest) and all(words in one for words, one in zip(rest, found, strict=True)), found


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I like fish and chips.", "I like fish."),
        ("We shop at Marks and Spencer and at Aldi.", "We shop at Lidl."),
        ("Tom has a sister who lives in Leeds and works as a nurse.", "Tom's sister lives in York."),
        ("Eva was born in Ghana and raised in Leeds.", "Eva was born in Togo."),
        ("Tom grows roses and plants in the garden.", "Tom grows roses at the allotment."),
        ("Ben wants to sell the house and move to Spain.", "Ben wants to let the house."),
        ("Kofi resigned and so the rota is short.", "The rota is full."),
        ("Kim lives in Leeds and works as a joiner at Hale's.", "Kim moved to York and still works at Hale's."),
        ("Marta is a nurse on ward 4 and lives in Leeds.", "Marta starts in York."),
        ("Pekel is a grey cat and sleeps by the stove.", "Pekel died by the stove."),
        ("Tom is the treasurer and keeps the minutes.", "Tom laid down the minutes and the cash box."),
        ("Der Wagen ist weiß und ist bis März versichert.", "Der Wagen ist bis Juni versichert."),
    ],
)
def test_nothing_stays_of_what_is_one_thing_or_not_sure(older: str, newer: str) -> None:
    assert list_untouched(older, newer) == []


def test_what_another_text_is_about_does_not_stay() -> None:
    older, newer = "Staging runs Postgres 15 and the backups go to S3.", "Staging runs Postgres 16."
    assert list_untouched(older, newer) == ["The backups go to S3."]
    assert list_untouched(older, newer, ["The backups are on Hetzner."]) == []
