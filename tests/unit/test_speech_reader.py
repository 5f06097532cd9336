"""The transformer that reads what a person does with each part of a message (S002-16, S002-17, S002-24)."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from newton.errors import ProviderError
from newton.providers.speech_reader import ACTS, SPEECH_MODEL, SpeechReader

DREAM = "I dreamt that I had sold the house and moved to a boat."


@pytest.fixture(scope="module")
def reader() -> SpeechReader:
    return SpeechReader()


def rate(reader: SpeechReader, text: str, part: str, context: str = "") -> str:
    start = text.index(part)
    rates = reader.read(text, context).rate(start, start + len(part))
    assert abs(sum(rates.values()) - 1) < 1e-5
    return max(rates, key=lambda act: rates[act])


def test_each_part_has_an_act_and_what_stands_around_it_counts(reader: SpeechReader) -> None:
    text = "My sister teaches chemistry in Leeds. Can you book me a table?"
    assert rate(reader, DREAM, DREAM) == "unreal"
    assert rate(reader, text, "My sister teaches chemistry in Leeds.") == "told"
    assert rate(reader, text, "Can you book me a table?") == "ask"
    moved = "We sold the house and moved to a boat."
    assert rate(reader, moved, moved) == "told"
    assert rate(reader, f"{moved} April fools!", moved) == "unreal"
    worked = "I have worked at Bosch for thirty years."
    assert rate(reader, worked, worked, "Let's practise my interview. You be the boss, I am Pavel.") == "unreal"


def test_a_long_message_is_read_in_windows_and_no_piece_is_lost(reader: SpeechReader) -> None:
    text = "My sister teaches chemistry in Leeds. " * 60 + "Can you book me a table?"
    reading = reader.read(text)
    assert len(reading.starts) == len(reading.ends) == len(reading.odds) and reading.odds.shape[1] == len(ACTS)
    assert reading.ends[-1] == len(text) and bool((np.diff(reading.starts) >= 0).all())
    assert rate(reader, text, "Can you book me a table?") == "ask"
    assert reader.read("").rate(0, 5) == {}


def test_a_fragment_marks_the_words_that_it_corrects(reader: SpeechReader) -> None:
    statement, message = "The dentist is on thursday at half nine.", "*friday"
    found = reader.compare(statement, message)
    assert found.wrong and statement[found.wrong.start : found.wrong.end] == "thursday"
    assert found.right and message[found.right.start : found.right.end] == "friday"
    talk = reader.compare(statement, "thanks, lovely")
    assert not (talk.wrong and talk.right)


def test_a_damaged_model_is_reported(tmp_path: Path) -> None:
    for file in (SPEECH_MODEL, SPEECH_MODEL.with_suffix(".sha256")):
        shutil.copy(file, tmp_path)
    model = tmp_path / SPEECH_MODEL.name
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    with pytest.raises(ProviderError, match="damaged"):
        SpeechReader(model)
