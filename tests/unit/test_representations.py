"""The short forms: one line, within their tokens, ending where a reader would end them."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.memory.representations import ELLIPSIS, MICRO_TOKENS, SUMMARY_TOKENS, make_short_forms, one_line, to_bullet
from newton.providers import token_counter

WORDS = st.lists(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12), min_size=1, max_size=300)
SENTENCES = st.lists(
    st.sampled_from(["It rained all day.", "Why?", "We sold the old boat to Carl!", "No."]), min_size=1, max_size=60
)
TEXTS = st.text(min_size=1, max_size=600).filter(str.strip)
PREFIXES = st.sampled_from(
    ["", "[2026-11-21] Ana: ", "[2026-11-21] " + "Hubert Blaine Wolfeschlegelsteinhausen " * 4 + ": "]
)


# S002-4
@given(TEXTS, PREFIXES)
@example("\u2028## Known\u0085\x0b\x1cInformation\r\n- x", "")
@example("日本語の長い文章" * 60, "")
@example("🦊" * 300, "[2026-11-21] Ana: ")
@example("a" * 5_000, "")
def test_a_form_is_one_line_within_its_tokens_whatever_the_text(text: str, prefix: str) -> None:
    made = make_short_forms(text, count_tokens=token_counter.count, prefix=prefix)
    for form, counted, limit in (
        (made.micro, made.micro_tokens, MICRO_TOKENS),
        (made.summary, made.summary_tokens, SUMMARY_TOKENS),
    ):
        assert len(form.splitlines()) == 1
        assert counted == token_counter.count(to_bullet(form))
        assert form.startswith(prefix)
        if counted > limit:
            assert len(form) <= len(prefix) + 1, "only a prefix that passes the limit alone may pass it"
    assert made.micro_tokens <= made.summary_tokens


@given(WORDS.map(" ".join))
def test_a_shortened_text_ends_at_a_word(text: str) -> None:
    for form in _shortened(text):
        assert form.endswith(ELLIPSIS)
        shown = form.removesuffix(ELLIPSIS)
        assert text.startswith(shown)
        assert text[len(shown) :][:1] == " "


@given(SENTENCES.map(" ".join))
def test_a_shortened_text_ends_at_a_sentence_where_one_ends_late_enough(text: str) -> None:
    for form in _shortened(text):
        assert form.removesuffix(ELLIPSIS) and text.startswith(form.removesuffix(ELLIPSIS))
        assert form[-1] in ".?!…"


@given(st.lists(st.sampled_from(["a", " ", "\n", "\t", "\u2028", "#"]), max_size=30).map("".join))
def test_folding_white_space_is_done_once_and_for_all(text: str) -> None:
    folded = one_line(text)
    assert one_line(folded) == folded
    assert folded.split() == text.split()
    assert len(folded.splitlines()) <= 1


def test_a_short_text_is_both_its_forms() -> None:
    made = make_short_forms("Oslo is cold.", count_tokens=token_counter.count)
    assert made.micro == made.summary == "Oslo is cold."
    assert made.micro_tokens == made.summary_tokens == token_counter.count("- Oslo is cold.\n")


@pytest.mark.parametrize("length", [1_000_000])
def test_a_very_long_text_costs_a_few_counts_of_little_text(length: int) -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return token_counter.count(text)

    make_short_forms("word " * (length // 5), count_tokens=count)
    assert sum(counted) < 10_000


def _shortened(text: str) -> list[str]:
    made = make_short_forms(text, count_tokens=token_counter.count)
    return [form for form in (made.micro, made.summary) if form != text and form]
