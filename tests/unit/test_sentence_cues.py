"""What words tell of, and that nobody waits for it: reading is linear in the text."""

from collections.abc import Callable

import pytest

from newton.dialogue.compaction.extractive_summary import find_paths, summarize_block
from newton.dialogue.sentence_cues import classify_sentence, count_cues, find_names
from newton.dialogue.session_summary import chunk_output, classify_lasting, lasting_sentences
from newton.dialogue.view import ViewMessage
from tests.support import count
from tests.timing import assert_near_linear

LONG = 100_000
RUNS = [
    *("-", ".", "/", "_", "a", "~", ":", "\\", "@", "http://", "://", "error: ", "Error", "a-", "a.", "a/", "a_", "./"),
    *("../", "~/", "C:\\", "a.py", "-a.", "/a.", "do not ", "let's ", "exit with ", "0f-3c ", "e.g. ", "é", "a\\"),
]
# of a tool's output, of what was said; each whole, so that no step of it takes longer than it may
READERS: dict[str, Callable[[str], object]] = {
    "recognised": classify_sentence,
    "names": find_names,
    "telling": count_cues,
    "states": lambda text: classify_lasting(f"It lies {text}"),
    "bullets": lasting_sentences,
    "things": lambda text: find_paths([text]),
    "account": lambda text: summarize_block(
        [ViewMessage("tool", text, 9, 0, 0), ViewMessage("assistant", text, 9, 1, 1)]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_however_a_text_is_made_it_is_read_at_once(reader: str) -> None:
    # S004-3
    for run in RUNS:
        whole = (run * LONG)[:LONG]
        assert_near_linear(lambda size, whole=whole: READERS[reader](f"{whole[:size]}("), LONG)


def test_a_long_output_is_cut_at_once() -> None:
    dump = "\n".join("-".join(f"{n:02x}" for n in range(256)) for _ in range(27))
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    chunk_output(dump, max_tokens=300, overlap=50, count_tokens=counting)
    assert sum(counted) < 12 * len(dump), "no text is counted again and again"


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ("That was a dead end.", "error"),
        ("It raised a ValueError at once.", "error"),
        ("We will keep Postgres.", "decision"),
        ("Do not touch the schema.", "constraint"),
        ("I do not know.", None),
        ("We still need to migrate it.", "task"),
        ("He ate 3/4 of it and/or more.", None),
        ("It is written in main.c there.", "path"),
        ("Look at https://example.org/a for it.", "path"),
    ],
)
def test_a_sentence_tells_of_the_first_that_it_shows(sentence: str, what: str | None) -> None:
    # S004-3, S003-A
    assert classify_sentence(sentence) == what


def test_names_are_found_as_they_are_written() -> None:
    # S003-A
    said = "In src/lib/. and `~/a/b`, C:\\Users\\Ana, -I/usr/include, x=./lib/y.so, a.b.c, f.py(1), 1.5, //no, a.py."
    assert find_names(said) == ["src/lib", "~/a/b", "C:\\Users\\Ana", "-I/usr/include", "./lib/y.so", "a.py"]
