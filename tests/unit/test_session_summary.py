"""Rolling summaries and the excerpts of outputs: bounded, in order, by cues and by centrality."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.compaction.extractive_summary import find_paths, summarize_block
from newton.dialogue.session_summary import (
    MAX_CHUNKS,
    SummarySizes,
    chunk_output,
    classify_lasting,
    is_due,
    lasting_sentences,
    speaker_sentences,
    summarize,
)
from newton.dialogue.view import ViewMessage
from newton.providers import token_counter
from newton.text.sentences import MAX_WORDS, MIN_WORDS, central_sentences, classify_sentence, count_cues, find_names
from tests.cases import load_cases
from tests.support import count
from tests.timing import assert_near_linear

CASES = load_cases(__file__)

FILLER = [f"step {n} of the build went on as it should and took {n} ms" for n in range(4_000)]


@pytest.mark.parametrize(("sentence", "what"), CASES["a_sentence_that_lasts_is_known_by_whole_words"])
def test_a_sentence_that_lasts_is_known_by_whole_words(sentence: str, what: str | None) -> None:
    # S004-3
    assert classify_lasting(sentence) == what


def test_quotes_and_names_are_kept_as_written() -> None:
    # S003-A
    said = "> We decided to use MySQL.\n```\nraise ValueError in src/a.py\n```\n- We decided to use Postgres. Fine."
    assert lasting_sentences(said) == ["We decided to use Postgres."]
    said = "In src/lib/. and `~/a/b`, C:\\Users\\Ana, -I/usr/include, x=./lib/y.so, a.b.c, f.py(1), 1.5, //no, a.py."
    assert find_names(said) == ["src/lib", "~/a/b", "C:\\Users\\Ana", "-I/usr/include", "./lib/y.so", "a.py"]


def test_outputs_are_kept_whole_or_by_head_tail_and_errors() -> None:
    # S004-7
    lines = [f"line {n}: {'word ' * 20}end" for n in range(40)]
    cut = chunk_output("\n".join(lines), max_tokens=300, overlap=50, count_tokens=token_counter.count)
    assert all(token_counter.count(piece) <= 300 for piece in cut)
    assert {line for piece in cut for line in piece.split("\n")} == set(lines)
    assert cut[1].split("\n")[0] == cut[0].split("\n")[-1], "a piece begins with the end of the one before it"
    # of a very long output head tail and errors are kept
    lines = [*FILLER]
    lines[2_500] = "E AssertionError: the answer is 41 in tests/test_answer.py"
    cut = chunk_output("\n".join(lines), max_tokens=300, overlap=50, count_tokens=token_counter.count)
    assert len(cut) <= MAX_CHUNKS
    assert cut[0].startswith("step 0 ")
    assert cut[-1].endswith("took 3999 ms")
    assert any("the answer is 41" in piece for piece in cut)


@given(st.text(max_size=3_000), st.integers(8, 60))
def test_no_piece_is_larger_than_it_may_be(output: str, size: int) -> None:
    cut = chunk_output(output, max_tokens=size, overlap=5, count_tokens=token_counter.count)
    assert len(cut) <= MAX_CHUNKS
    assert all(piece.strip() for piece in cut)
    assert all(token_counter.count(piece) <= size or len(piece) <= 1 for piece in cut)


WORDS = st.sampled_from(["we", "decided", "the ferry", "must", "sail", "at nine", "Lisbon", "never", "waits", "train"])
SENTENCE = st.lists(WORDS, min_size=1, max_size=15).map(lambda words: " ".join(words) + ".")


@given(st.lists(SENTENCE, max_size=80), st.integers(0, 300))
def test_a_summary_is_in_order_of_what_was_said_and_within_its_tokens(said: list[str], most: int) -> None:
    # S004-5
    units = [unit for sentence in said for unit in speaker_sentences("Ana", sentence)]
    taken = summarize(units, lambda some: token_counter.count(" ".join(some)) <= most)
    own = list(dict.fromkeys(units))
    assert [unit for unit in own if unit in set(taken)] == taken
    assert token_counter.count(" ".join(taken)) <= most or taken == own[:1]


def test_a_summary_is_due_after_so_many_lines_and_keeps_what_lasts() -> None:
    # S004-5, S004-12
    chat = [f"Ana: Then we looked at picture number {n} of the harbour." for n in range(60)]
    units = [
        "Ana: We plan a trip.",
        *chat[:30],
        "Ben: We decided to take the night ferry.",
        *chat[30:],
        "Ben: See you.",
    ]
    taken = summarize(units, lambda some: token_counter.count(" ".join(some)) <= 60)
    assert (taken[0], taken[-1]) == (units[0], units[-1])
    assert "Ben: We decided to take the night ferry." in taken
    # a summary is due after so many lines or tokens
    sizes = SummarySizes(max_new_messages=12, max_new_tokens=1_000)
    assert [is_due(11, 900, sizes), is_due(12, 0, sizes), is_due(1, 1_001, sizes), is_due(0, 0, sizes)] == [
        False,
        True,
        True,
        False,
    ]


TALK = [
    "Hello! How are you today?",
    "The ferry to Oslo was late again this morning.",
    "Oh no. My cat sleeps.",
    "The ferry company says that the ferry will be late all week because of the ice.",
    "Take the train to Oslo instead of the ferry then.",
    "Fine, thanks a lot, bye.",
]


def test_it_is_what_the_talk_was_about_told_once_in_order() -> None:
    assert "Hello!" not in central_sentences(TALK, limit=3)
    assert all("ferry" in sentence for sentence in central_sentences(TALK, limit=2))
    assert central_sentences([TALK[1], TALK[1], TALK[1]], limit=3) == [TALK[1]]
    assert central_sentences([], limit=3) == central_sentences(["Yes.", "日本語。", "…"], limit=3) == []


@given(st.lists(st.text(max_size=200), max_size=12), st.integers(0, 4))
def test_it_only_quotes_and_keeps_its_bounds(texts: list[str], most: int) -> None:
    told = central_sentences(texts, limit=most)
    assert len(told) <= most
    assert all(any(sentence in text for text in texts) for sentence in told)
    assert all(MIN_WORDS <= len(sentence.split()) <= MAX_WORDS for sentence in told)
    assert told == central_sentences(texts, limit=most)


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


@pytest.mark.parametrize(("sentence", "what"), CASES["a_sentence_tells_of_the_first_that_it_shows"])
def test_a_sentence_tells_of_the_first_that_it_shows(sentence: str, what: str | None) -> None:
    # S004-3, S003-A
    assert classify_sentence(sentence) == what
