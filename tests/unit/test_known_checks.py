"""Items without a line: known facts are merged only if nothing is lost, and only what says nothing is dropped."""

from dataclasses import replace

import pytest

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


def test_nothing_is_merged_beside_foreign_text_or_what_a_line_changes() -> None:
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
