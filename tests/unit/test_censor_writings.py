"""Censors find forbidden phrases in disguised writings, half of which were not used to write the matcher."""

from typing import Any

import pytest

from newton.content.yaml_files import parse_trusted
from newton.heart.censor_text import list_variants, prepare_text, prepare_trigger
from newton.heart.censors import CensorRule, MatchMode
from tests.timing import assert_near_linear
from tests.unit.source_trees import ROOT

WRITINGS: dict[str, Any] = parse_trusted((ROOT / "tests/data/censor_writings.yaml").read_text(encoding="utf-8"))
MIN_STOPPED, MAX_FALSE = 0.9, 0.02


def is_found(phrase: str, text: str) -> bool:
    return prepare_trigger(phrase).is_in(prepare_text(text))


def test_the_writings_are_of_twenty_phrases_in_ten_disguises() -> None:
    assert len(WRITINGS["phrases"]) == 20 and len({disguise for _, disguise, _ in WRITINGS["writings"]}) >= 10
    assert len(WRITINGS["writings"]) >= 200 and len(WRITINGS["harmless"]) >= 200


@pytest.mark.parametrize("half", [0, 1], ids=["tuned", "heldout"])
def test_nine_disguised_writings_in_ten_are_found(half: int) -> None:
    writings = WRITINGS["writings"][half::2]
    missed = [(phrase, disguise) for phrase, disguise, text in writings if not is_found(phrase, text)]
    assert len(missed) <= (1 - MIN_STOPPED) * len(writings), missed


@pytest.mark.parametrize("half", [0, 1], ids=["tuned", "heldout"])
def test_at_most_two_harmless_lines_in_a_hundred_are_found(half: int) -> None:
    lines = WRITINGS["harmless"][half::2]
    found = [line for line in lines if any(is_found(phrase, line) for phrase in WRITINGS["phrases"])]
    assert len(found) <= MAX_FALSE * len(lines), found


def test_a_disguise_of_any_class_is_seen_through_and_other_words_are_not() -> None:
    disguises = parse_trusted((ROOT / "tests/data/disguises.yaml").read_text(encoding="utf-8"))
    assert len({way for _, way, _ in disguises["writings"]}) >= 40
    missed = [(phrase, way) for phrase, way, text in disguises["writings"] if not is_found(phrase, text)]
    assert len(missed) <= 0.02 * len(disguises["writings"]), missed
    assert [(phrase, text) for phrase, text in disguises["harmless"] if is_found(phrase, text)] == []


@pytest.mark.parametrize(
    ("phrase", "text"),
    [("plan", "the plant is green"), ("pin", "spin it"), ("import", "it is important"), ("drop", "a droplet")],
)
def test_another_word_is_not_found(phrase: str, text: str) -> None:
    assert not is_found(phrase, text)


def test_an_encoding_within_an_encoding_is_decoded_but_not_a_third() -> None:
    assert "drop table" in list_variants("WkhKdmNDQjBZV0pzWlE9PQ==")
    assert "drop table" not in list_variants("V2toS2RtTkRRakJaVjBwelpsRTlQUT09")


@pytest.mark.parametrize("mode", ["phrase", "pattern", "meaning"])
def test_a_rule_says_what_it_does_not_find(mode: MatchMode) -> None:
    assert "does not find" in (note := CensorRule(trigger="drop", reason="r", match_mode=mode).describe_limits()) or (
        "not compared" in note
    )
    assert "\n" not in note
    assert "within a longer word" in CensorRule(trigger="删除数据库", reason="r").describe_limits()


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["a", "a ", "ab1_", "%41", "\\x41", "41 ", "&#65;", "\\u0041", "д", "删", "QUJD", "&"]
)
def test_a_text_made_to_be_slow_is_not(piece: str) -> None:
    hostile = piece * 60_000
    assert_near_linear(lambda size: prepare_text.__wrapped__(hostile[:size]), 60_000)
