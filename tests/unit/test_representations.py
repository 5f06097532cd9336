"""The forms of a text: within their tokens, with its lines, ending where a reader would end them."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.memory.representations import (
    ELLIPSIS,
    INDENT,
    MICRO_TOKENS,
    SUMMARY_TOKENS,
    keep_lines,
    make_long_forms,
    make_short_forms,
    one_line,
    to_bullet,
)
from newton.providers import token_counter

WORDS = st.lists(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12), min_size=1, max_size=300)
SENTENCES = st.lists(
    st.sampled_from(["It rained all day.", "Why?", "We sold the old boat to Carl!", "No."]), min_size=1, max_size=60
)
LINES = st.lists(
    st.builds(
        lambda deep, words: "  " * deep + words,
        st.integers(0, 3),
        st.sampled_from(["web:", "image: acme/web:2.3", "- 8080", "| a | 12 |"]),
    ),
    min_size=2,
    max_size=200,
).map(lambda lines: keep_lines("\n".join(lines)))
TEXTS = st.text(min_size=1, max_size=600).filter(str.strip)
PREFIXES = st.sampled_from(
    ["", "[2026-11-21] Ana: ", "[2026-11-21] " + "Hubert Blaine Wolfeschlegelsteinhausen " * 4 + ": "]
)


# S002-4
@given(TEXTS, PREFIXES, st.booleans())
@example("\u2028## Known\u0085\x0b\x1cInformation\r\n- x", "", False)
@example("日本語の長い文章" * 60, "", True)
@example("🦊" * 300, "[2026-11-21] Ana: ", False)
@example("🦊" * 300, "[2026-11-21] Ana: ", True)
@example("a" * 5_000, "", False)
def test_a_form_is_one_item_within_its_tokens_whatever_the_text(text: str, prefix: str, keep_end: bool) -> None:
    made = make_short_forms(text, count_tokens=token_counter.count, prefix=prefix, keep_end=keep_end)
    for form, counted, limit in (
        (made.micro, made.micro_tokens, MICRO_TOKENS),
        (made.summary, made.summary_tokens, SUMMARY_TOKENS),
    ):
        assert_one_item(form)
        assert counted == token_counter.count(to_bullet(form))
        assert form.startswith(prefix)
        if counted > limit:
            assert len(form) <= len(prefix) + 1, "only a prefix that passes the limit alone may pass it"
    assert made.micro_tokens <= made.summary_tokens


def assert_one_item(form: str) -> None:
    """A memory begins no line and no section of a context."""
    first, *others = to_bullet(form).splitlines()
    assert first.startswith("- ") and all(line.startswith(INDENT) or not line.strip() for line in others)
    assert form.splitlines() == form.split("\n")


# S002-4
@given(st.lists(st.text(max_size=120), min_size=2, max_size=60).map("\n".join))
@example("\n\tdef f():\r\n\t\treturn 1\n\n\n\tprint(f())\n" * 30)
def test_a_window_is_one_item_and_the_windows_have_each_line(text: str) -> None:
    made = make_long_forms(text, count_tokens=token_counter.count)
    if made is None:
        return
    shown = list[str]()
    for window in made.windows:
        assert_one_item(window.text)
        assert window.tokens == token_counter.count(to_bullet(window.text))
        shown += window.text.removeprefix("…\n").removesuffix("\n…").split("\n")
    short = [line for line in keep_lines(text).split("\n") if line.strip() and len(line) < 50 and ". " not in line]
    assert [line for line in short if not any(line in one for one in shown)] == []


# S002-4
@given(LINES)
def test_a_shortened_text_of_lines_has_whole_lines_in_their_order(text: str) -> None:
    for form in (*_shortened(text), *_shortened(text, keep_end=True)):
        lines, shown = iter(text.split("\n")), [line for line in form.split("\n") if line != ELLIPSIS.strip()]
        whole = [line for line in shown if ELLIPSIS not in line]
        assert len(shown) - len(whole) <= (len(shown) == 1), "a line is cut only where not even one fits"
        assert all(any(line == one for one in lines) for line in whole), (form, text)


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


# S002-4
@given(WORDS.map(" ".join))
def test_a_text_without_its_middle_keeps_its_first_and_last_words_and_shows_the_gap(text: str) -> None:
    for form in _shortened(text, keep_end=True):
        head, gap, tail = form.partition(f"{ELLIPSIS} ")
        assert gap and head and tail
        assert text.startswith(f"{head} ") and text.endswith(f" {tail}")
        assert len(head) + len(tail) < len(text)


@given(SENTENCES.map(" ".join))
def test_a_text_without_its_middle_is_cut_between_sentences_where_they_are_short_enough(text: str) -> None:
    made = make_short_forms(text, count_tokens=token_counter.count, max_tokens=400, keep_end=True)
    if made.summary != text:
        head, _, tail = made.summary.partition(f"{ELLIPSIS} ")
        assert text.startswith(head) and text.endswith(tail)
        assert head[-1] in ".?!" and text[-len(tail) - 2] in ".?!"


# S002-4
@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        (
            "The landlord agreed in writing that the deposit of two months is returned thirty days after we leave, "
            "less the cost of cleaning the oven, and that the bicycles may stay in the yard until the end of March.",
            "The landlord agreed",
            "until the end of March.",
        ),
        (
            "After the scan on Tuesday the doctor said that the knee needs no operation; physiotherapy twice a week "
            "for six weeks should do, no running before May, and Mum must not drive herself to the appointments.",
            "After the scan",
            "to the appointments.",
        ),
    ],
)
def test_the_micro_form_of_a_long_statement_keeps_how_it_begins_and_how_it_ends(
    text: str, begins: str, ends: str
) -> None:
    made = make_short_forms(text, count_tokens=token_counter.count, max_tokens=400, keep_end=True)
    assert made.summary == text
    assert made.micro.startswith(begins) and made.micro.endswith(ends) and ELLIPSIS in made.micro
    assert made.micro_tokens <= MICRO_TOKENS


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


def _shortened(text: str, *, keep_end: bool = False) -> list[str]:
    made = make_short_forms(text, count_tokens=token_counter.count, keep_end=keep_end)
    return [form for form in (made.micro, made.summary) if form != text and form]
