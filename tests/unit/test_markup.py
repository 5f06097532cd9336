"""Markdown and plain text: whatever they hold is read, soon, and no word of it is lost."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.content.formats import markdown
from newton.errors import InputError
from tests.timing import assert_near_linear

WORDS = st.text("abc xyz\n\t.!`*_[]()<>#-=+|:\"'~\\&;1é日\u2028", max_size=200)


@given(WORDS)
@example("---\na: b\n" + "-a: b\n" * 60)
@example("---\ntitle: 'x\n---\n")
@example("<h1>a<h2>b</h1>c")
@example("===\na\n===\n===")
def test_no_text_is_too_strange_to_be_read(text: str) -> None:
    for read in (markdown.parse_markdown, markdown.parse_plain_text):
        reading = read(text)
        assert all(paragraph.strip() for section in reading.sections for paragraph in section.paragraphs)
        assert all(section.paragraphs for section in reading.sections)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=8), min_size=1, max_size=30), st.data())
def test_no_word_is_lost(words: list[str], data: st.DataObject) -> None:
    between = data.draw(
        st.lists(
            st.sampled_from([" ", "\n", "\n\n", "\n\n# ", "\n\n- ", "\n\n> ", "\n\n    ", "\n\n```\n", "\n===\n\n"])
        )
    )
    text = "".join(
        word + gap for word, gap in zip(words, between + [" "] * max(0, len(words) - len(between)), strict=False)
    )
    for read in (markdown.parse_markdown, markdown.parse_plain_text):
        kept = " ".join(" ".join((section.heading, *section.paragraphs)) for section in read(text).sections)
        assert [word for word in words if word not in kept] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "> " * 250_000,
        "- " * 250_000,
        "a\n" * 100_000,
        "[" * 500_000,
        "<!--\n" * 50_000,
        "---\n" + "a: b\n" * 50_000,
        "# " + "[" * 200_000,
        "`" * 500_000,
        " " * 500_000 + "x",
        "<" * 500_000,
        "|a" * 2_000 + "\n" + "|-" * 2_000,
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    def read_both(size: int) -> None:
        for read in (markdown.parse_markdown, markdown.parse_plain_text):
            try:
                read(text[-size:])
            except InputError as error:
                assert "too deep" in error.what

    assert_near_linear(read_both, len(text))
