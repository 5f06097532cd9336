"""The transformer that reads two statements together, and its part in the verdict on a change."""

import hashlib
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from newton.errors import ProviderError
from newton.heart.statements.change_detection import ChangeVerdict, detect_change
from newton.heart.statements.statement_selection import list_spans, select_statements
from newton.providers.minilm import DATA, DIMENSIONS, READER_MODEL, MiniLM, PairReader, load_word_table

PAIRS = [
    ("I take 40 mg of citalopram in the morning.", "The doctor cut my citalopram down to 20."),
    ("My physio is Mr Brandt.", "Mr Brandt says my knee needs six more weeks."),
    ("Grandpa drives a green Volvo.", "Grandpa's neighbour wrote off his Volvo last night."),
    ("", "Grandpa's Volvo went to the scrapyard after the crash."),
    ("\ud800", "👩‍👧 \0"),
]


@pytest.fixture(scope="module")
def reader() -> PairReader:
    return PairReader()


def test_pairs_have_the_same_score_read_together_and_alone_and_their_order_counts(reader: PairReader) -> None:
    # S002-16
    # whether a fact is contradicted does not depend on what else is compared
    together = reader.score_pairs(PAIRS * 10)
    alone = [reader.score_pairs([pair])[0] for pair in PAIRS]
    assert together == alone * 10
    assert together[0] > 2 > -2 > max(together[1:3])
    assert reader.score_pairs([]) == []
    # the newer statement supersedes the older one
    (older, newer) = PAIRS[0]
    forwards, backwards = reader.score_pairs([(older, newer), (newer, older)])
    assert forwards - backwards > 1


def test_both_statements_count_however_long_one_is(reader: PairReader) -> None:
    # S002-16
    (older, newer), long = PAIRS[0], " The harbour was quiet that day." * 200
    scores = reader.score_pairs(
        [(older + long, newer), (older + long, "We sing."), (older, newer + long), (long, newer)]
    )
    assert len({round(score, 2) for score in scores}) == 4
    # what lies beyond the limit makes no difference
    assert reader.score_pairs([(older + long * 2, newer)]) == reader.score_pairs([(older + long, newer)])


def test_a_file_that_is_damaged_missing_or_does_not_load_is_refused(tmp_path: Path) -> None:
    # S004-12
    # the local models are files that Newton ships
    model = tmp_path / READER_MODEL.name
    shutil.copy(READER_MODEL.with_suffix(".sha256"), tmp_path)
    model.write_bytes(READER_MODEL.read_bytes()[:-1] + b"\0\0")
    with pytest.raises(ProviderError, match="Reinstall Newton"):
        PairReader(model)
    with pytest.raises(ProviderError, match="Reinstall Newton"):
        PairReader(tmp_path / "missing.onnx")
    # a file with the right SHA-256 that ONNX Runtime cannot read
    model = tmp_path / READER_MODEL.name
    model.write_bytes(b"no graph")
    model.with_suffix(".sha256").write_text(hashlib.sha256(b"no graph").hexdigest(), encoding="ascii")
    with pytest.raises(ProviderError, match="does not load"):
        PairReader(model)


def test_the_transformers_share_one_copy_of_the_word_vectors() -> None:
    # S004-12
    # one copy of the word vectors serves all local models
    ids = np.array([[7733, 8000], [0, 30_521]])
    vectors = load_word_table().take_vectors(ids)
    assert vectors.shape == (2, 2, DIMENSIONS)
    assert vectors.dtype == np.float32
    assert 0.5 < np.linalg.norm(vectors[0, 0]) < 3
    # the readers together make an install at most 43 MB larger
    sizes = {path.name: path.stat().st_size for path in DATA.glob("*.onnx")}
    assert sizes[READER_MODEL.name] < 8_000_000
    assert sum(sizes.values()) < 43_000_000


def judge(minilm: MiniLM, older: str, newer: str, reading: float) -> ChangeVerdict:
    first, second = minilm.embed_now([older, newer])
    return detect_change(older, newer, cosine=float(first @ second), reading=reading)


def test_the_more_the_reader_says_for_a_replacement_the_more_probable_it_is(minilm: MiniLM) -> None:
    # S002-16: superseded when the evidence is clear
    for older, newer in (PAIRS[0], ("The kiln is in the cellar.", "The kiln has moved to the garage.")):
        found = [judge(minilm, older, newer, reading) for reading in (-4.0, -1.0, 1.0, 4.0)]
        assert sorted(found, key=lambda one: one.probability) == found
        assert [found[0].kind, found[-1].kind] == ["compatible", "update"]
        assert found[-1].probability - found[0].probability > 0.5
    # without a reading the words decide
    assert judge(minilm, "The kiln is in the cellar.", "The kiln has moved to the garage.", math.nan).kind == "update"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My greyhound is called Tango, he's six.", "Tango had a tooth pulled in March and gets soft food only."),
        ("Project Heron: goal is to cut the sync time.", "Project Heron: deadline is 30 June."),
        ("Our house has a slate roof.", "We heat the house with a heat pump."),
        ("My sister is Mara.", "Mara is back from Lisbon, she lives with us again."),
        ("I live in Trondheim with Runa.", "My mother lives in Molde."),
        ("Mateo has a brown dog named Rex.", "Mateo no longer smokes."),
        ("Logs are kept for fourteen days.", "Send reminders after ten days instead of fourteen."),
        ("Eye drops: one at night.", "left eye done, right to be watched"),
        ("I cycle to work.", "I quit my job at the radio station."),
        ("Zwingen 60er: 14 Stück", "Zwingen 100er: 8 Stück"),
        ("Garza wedding Sept 20 the Veranda", "Whitlock wedding April 12, bride vegan"),
        ("Four employees and one apprentice", "Apprentice: Melek, 91 points in the examination"),
    ],
)
def test_statements_on_two_things_leave_no_doubt_however_the_reader_takes_them(
    minilm: MiniLM, reader: PairReader, older: str, newer: str
) -> None:
    # S002-16: a contradiction needs one thing of which both speak
    assert judge(minilm, older, newer, reader.score_pairs([(older, newer)])[0]).kind == "compatible"


def test_the_parts_of_a_message_that_may_state_a_change_are_statements() -> None:
    # S002-16
    spans = list_spans("Sold the kit to Jo. Can you draft the advert? The cellar is free now, Jo collects it.")
    assert [len(one) for one in spans] == sorted(map(len, spans))
    assert "Sold the kit to Jo" in {one.rstrip(". ") for one in spans}
    assert not [one for one in spans if "advert" in one]
    assert list_spans("Ich wohne jetzt in Bergen und fahre mit dem Rad zur Arbeit.") == []
    # a part that replaces a known fact is a statement in any case
    message = "the doc halved it to 10. Any foods to avoid?"
    assert "the doc halved it to 10" not in {one.content.rstrip(".") for one in select_statements(message)}
    kept = select_statements(message, changing="the doc halved it to 10")
    assert [one.content for one in kept] == ["The doc halved it to 10."]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I take Eliquis twice a day.", "My neighbour no longer takes Eliquis twice a day."),
        ("I take aspirin every morning.", "My uncle takes ibuprofen instead of aspirin."),
        ("I am vegetarian.", "Tom no longer eats meat and is vegetarian."),
        ("My brother works at Bosch.", "My sister no longer works at Bosch."),
        ("Ich wohne in Linz.", "Mein Bruder wohnt nicht mehr in Linz."),
        ("Je prends de l'Eliquis.", "Mon voisin ne prend plus d'Eliquis."),
        ("Tomo Eliquis cada día.", "Mi vecino ya no toma Eliquis."),
        ("Я принимаю Эликвис.", "Мой сосед больше не принимает Эликвис."),
        ("My dentist is Dr Klein.", "My dentist is on holiday."),
        ("Mein Zahnarzt ist Dr. Klein.", "Mein Zahnarzt ist gerade krank."),
        ("Mein Zahnarzt ist Dr. Klein.", "Der Zahnarzt meiner Schwester ist Dr. Weber."),
        # a denial of another value leaves the true one
        ("My landlord is Mr. Petrov.", "My landlord is not Mr. Iliev, whatever the letter says."),
        ("My dentist is Dr Klein.", "My dentist isn’t Dr Weber."),
        ("My car is red.", "My car's definitely not blue."),
        ("My dog is called Rufus.", "My dog is not called Bolt."),
        ("The standup is on Tuesday.", "The standup isn't on Wednesday."),
        ("Ich wohne in Graz.", "Nein, ich bin nicht nach Linz gezogen, das war mein Bruder."),
        ("Mein Auto ist rot.", "Mein Auto ist nicht blau."),
        ("Mi medico es el doctor Ruiz.", "Mi medico no es el doctor Vega."),
        ("Mon médecin est le docteur Moreau.", "Mon médecin n'est pas le docteur Garnier."),
        ("Mijn tandarts is De Wit.", "Mijn tandarts is niet Bakker."),
        ("我的牙医是王医生。", "我的牙医不是李医生。"),
        ("私は東京に住んでいます。", "私は大阪に住んでいません。"),
    ],
)
def test_what_is_so_of_another_person_or_for_a_while_replaces_nothing(older: str, newer: str) -> None:
    # S002-16
    assert detect_change(older, newer, cosine=0.8, reading=4.0).kind == "compatible"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I take Eliquis twice a day.", "I no longer take Eliquis twice a day."),
        ("My brother Tom works at Bosch.", "Tom no longer works at Bosch."),
        ("My brother works at Bosch.", "My brother no longer works at Bosch."),
        ("I visit my uncle on Sundays.", "My uncle no longer lives here, so no Sundays."),
        ("Mein Bruder wohnt in Linz.", "Mein Bruder wohnt nicht mehr in Linz."),
        ("My dentist is Dr Klein.", "My dentist is Dr Weber now."),
        ("My mother takes Eliquis.", "My mum no longer takes Eliquis."),
        ("My landlord is Mr. Petrov.", "My landlord is no longer Mr. Petrov."),
        ("My landlord is Mr. Petrov.", "My landlord is not Mr. Petrov but Mr. Iliev."),
        ("My landlord is Mr. Petrov.", "My landlord is Mr. Iliev, not Mr. Adams."),
        ("My dentist is Dr Klein.", "I don't know why but my dentist is Dr Weber now."),
        ("I live in Graz.", "I don't live in Graz any more."),
        ("I live in Graz.", "I moved to Linz, not to Wels."),
        ("Ich wohne in Graz.", "Ich wohne nicht in Graz, sondern in Linz."),
        ("Mi médico es el doctor Ruiz.", "Mi médico no es el doctor Ruiz."),
        ("我住在北京。", "我不再住在北京。"),
    ],
)
def test_what_changes_for_the_same_person_replaces(older: str, newer: str) -> None:
    # S002-16
    assert detect_change(older, newer, cosine=0.8, reading=4.0).kind == "update"
