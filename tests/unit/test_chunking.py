"""Passages: bounded, whole where they can be, overlapping, and changed only where the document was."""

import itertools
import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.content.sections import DocumentSection
from newton.heart.chunking import TextChunk, split_passages
from newton.providers import token_counter
from tests.support import examples

SIZE, OVERLAP = 40, 12  # small enough for a short example to be cut in every way

SENTENCE = st.lists(st.text("abcdefghij", min_size=1, max_size=9), min_size=1, max_size=14).map(
    lambda words: " ".join(words) + "."
)
PROSE = st.lists(SENTENCE, min_size=1, max_size=8).map(" ".join)
CODE = st.lists(
    SENTENCE | st.sampled_from(["", "    return", "}}", "\tx = 1;  # why. so"]), min_size=1, max_size=9
).map(lambda lines: "\n".join(["def f():", *lines, "end"]))
# Whatever else a file may hold: no spaces, no letters, white space of all kinds, characters of several tokens.
ANY = st.text(st.characters(codec="utf-8") | st.sampled_from(" \n.!é日👩\u200d\u3000"), min_size=1, max_size=300)
PARAGRAPH = PROSE | CODE | ANY.filter(str.strip)
SECTION = st.tuples(
    st.sampled_from(["", "Install", "Install > Linux"]), st.lists(PARAGRAPH, max_size=6).map(tuple)
).map(lambda fields: DocumentSection(*fields))
DOCUMENT = st.lists(SECTION, max_size=4)
TIDY = st.lists(
    st.lists(PROSE | CODE, max_size=6).map(lambda paragraphs: DocumentSection("", tuple(paragraphs))), max_size=4
)


def cut(sections: list[DocumentSection]) -> list[TextChunk]:
    return split_passages(sections, count_tokens=token_counter.count, size=SIZE, overlap=OVERLAP)


def repeated(before: TextChunk, after: TextChunk) -> str:
    """The longest end of one chunk that begins the other."""
    return next(before.text[n:] for n in range(len(before.text) + 1) if after.text.startswith(before.text[n:]))


def sentences(count: int, *, start: int = 0) -> str:
    return " ".join(f"Sentence number {n} stands here." for n in range(start, start + count))


# S004-7
@given(DOCUMENT)
@examples(16)
@example([DocumentSection("", ("a" * 1_000,))])
@example([DocumentSection("", ("👩‍👩‍👧‍👦" * 60,))])
@example([DocumentSection("", ("}}\n}}\n" * 60,))])
@example([DocumentSection("", (" " * 500 + "x.\n" + "\n" * 500 + "y" + " " * 500 + "z.",))])
def test_no_chunk_is_over_its_size_and_each_knows_its_tokens(sections: list[DocumentSection]) -> None:
    for chunk in cut(sections):
        assert 0 < chunk.tokens == token_counter.count(chunk.text) <= SIZE
        assert chunk.text.strip()


@given(DOCUMENT)
@examples(12)
def test_no_letter_is_lost_and_none_comes_out_of_order(sections: list[DocumentSection]) -> None:
    for section in sections:
        chunks = cut([section])
        left = "".join(chunk.text for chunk in chunks)
        wanted = "".join("".join(section.paragraphs).split())
        given = iter("".join(left.split()))
        assert all(letter in given for letter in wanted), "the letters of the section, in order, and some of them twice"


@pytest.mark.slow
@given(TIDY)
@examples(20)
def test_every_word_is_whole_in_some_chunk(sections: list[DocumentSection]) -> None:
    kept = Counter(word for chunk in cut(sections) for word in chunk.text.split())
    assert Counter(word for s in sections for p in s.paragraphs for word in p.split()) <= kept


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=9), min_size=1, max_size=6))
def test_chunks_overlap_by_whole_sentences_that_fit(paragraphs: list[list[int]]) -> None:
    numbers = itertools.count()
    made = tuple(
        " ".join(f"S{next(numbers)}" + " row" * words + "." for words in paragraph) for paragraph in paragraphs
    )
    chunks = cut([DocumentSection("", made)])
    again = [repeated(before, after) for before, after in itertools.pairwise(chunks)]
    for text in again:
        assert token_counter.count(text) <= OVERLAP
        assert re.fullmatch(r"(S\d+( row)*\.\s*)*", text)
    for chunk, first, last in zip(chunks, ["", *again], [*again, ""], strict=True):
        assert len(first) + len(last) < len(chunk.text), "each says something that no other says"


def test_the_last_sentences_are_repeated_unless_there_is_no_overlap() -> None:
    chunks = cut([DocumentSection("", (sentences(40),))])
    assert len(chunks) > 5
    for before, after in itertools.pairwise(chunks):
        assert re.fullmatch(r"Sentence number \d+ stands here\.", repeated(before, after))
    text = sentences(60)
    chunks = split_passages([DocumentSection("", (text,))], count_tokens=token_counter.count, size=SIZE, overlap=0)
    assert " ".join(chunk.text for chunk in chunks) == text


@given(DOCUMENT, DOCUMENT, SECTION, SECTION)
@examples(10)
def test_an_edit_changes_only_the_chunks_of_its_section(
    before: list[DocumentSection], after: list[DocumentSection], old: DocumentSection, new: DocumentSection
) -> None:
    # A re-ingested document keeps all passages but those of the section that was edited.
    assert cut([*before, old, *after]) == cut(before) + cut([old]) + cut(after)
    assert cut([*before, new, *after]) == cut(before) + cut([new]) + cut(after)


@given(DOCUMENT, st.integers(0, 6))
@examples(20)
def test_the_bound_holds_for_counts_that_do_not_add_up(sections: list[DocumentSection], surplus: int) -> None:
    def count(text: str) -> int:
        return len(text) // 4 + surplus * (text.count("\n\n") + text.count(". "))

    for chunk in split_passages(sections, count_tokens=count, size=SIZE, overlap=OVERLAP):
        assert chunk.tokens == count(chunk.text) <= SIZE
    chunks = split_passages([DocumentSection("", (sentences(20),))], count_tokens=count, size=SIZE, overlap=20)
    assert all(count(repeated(before, after)) <= 20 for before, after in itertools.pairwise(chunks))


def test_paragraphs_words_and_code_are_cut_where_they_may_be() -> None:
    one, two, three = sentences(2), sentences(2, start=10), sentences(2, start=20)
    chunks = cut([DocumentSection("Install", (one, two, three)), DocumentSection("Care", ("Oil the oars.",))])
    assert [(chunk.heading, chunk.text) for chunk in chunks] == [
        ("Install", f"{one}\n\n{two}"),
        ("Install", f"Sentence number 11 stands here.\n\n{three}"),
        ("Care", "Oil the oars."),
    ]
    # a long sentence is cut at words and a long word anywhere
    words = cut([DocumentSection("", ("oar " * 400,))])
    assert {word for chunk in words for word in chunk.text.split()} == {"oar"}
    letters = cut([DocumentSection("", ("oar" * 4_000,))])
    assert "".join(chunk.text for chunk in letters) == "oar" * 4_000
    assert min(chunk.tokens for chunk in letters[:-1]) > SIZE / 2
    # code keeps its lines and its indentation
    code = "\n".join(f"def row_{n}(boat):\n    boat.pull()\n\n    return boat\n\n" for n in range(12)).strip()
    short = "def row():\n    return 1.  # so. there\n\n\nrow()"
    assert cut([DocumentSection("", (short,))]) == [TextChunk("", short, token_counter.count(short))]
    chunks = cut([DocumentSection("", (code,))])
    assert len(chunks) > 3
    assert all(chunk.text in code for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (sentences(30), "here."),
        ('He said "Row the boat home now." (And we all did row.) ' * 10, ('"', ")")),
        ("船を漕ぐ。家に帰る。" * 20, "。"),
    ],
)
def test_a_long_paragraph_is_cut_at_sentences(text: str, ends: str | tuple[str, ...]) -> None:
    chunks = cut([DocumentSection("", (text,))])
    assert len(chunks) > 3
    assert all(chunk.text.endswith(ends) for chunk in chunks)
    assert min(chunk.tokens for chunk in chunks[:-1]) > SIZE / 2


def test_what_is_left_at_the_end_joins_the_chunk_before_if_both_fit() -> None:
    # Counted alone each line pays for its end; in one text no end costs anything.
    def count(text: str) -> int:
        return len(text.split())

    lines = tuple("one two three" for _ in range(13))
    section = DocumentSection("", lines)
    assert split_passages([section], count_tokens=count, size=39, overlap=8) == [TextChunk("", "\n\n".join(lines), 39)]
    assert len(split_passages([section], count_tokens=count, size=38, overlap=8)) == 2


@pytest.mark.parametrize(("size", "overlap"), [(7, 0), (40, 40), (40, -1)])
def test_sizes_that_leave_no_room_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="at least 8 tokens"):
        split_passages([], count_tokens=token_counter.count, size=size, overlap=overlap)


def test_an_edit_in_a_text_without_headings_changes_few_chunks() -> None:
    paragraphs = [sentences(1 + n * 7 % 11, start=n * 100) for n in range(400)]
    before = set(split_passages([DocumentSection("", tuple(paragraphs))], count_tokens=token_counter.count))
    paragraphs[5] += " And one more."
    after = set(split_passages([DocumentSection("", tuple(paragraphs))], count_tokens=token_counter.count))
    assert len(before) > 50
    assert len(after - before) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "paragraphs",
    [
        (sentences(30_000),),
        tuple(sentences(5, start=n) for n in range(6_000)),
        ("a" * 1_000_000,),
        ("word " * 200_000,),
        ("." * 1_000_000,),
        ("x" + " \n" * 500_000 + "y",),
        ("日" * 200_000,),
    ],
    ids=["sentences", "paragraphs", "letters", "words", "dots", "blank", "wide"],
)
def test_a_megabyte_takes_no_quadratic_time(paragraphs: tuple[str, ...]) -> None:
    seen: list[int] = []

    def count(text: str) -> int:
        seen.append(len(text))
        return token_counter.count(text)

    split_passages([DocumentSection("", paragraphs)], count_tokens=count)
    assert max(seen) < 30_000
    assert sum(seen) < 12 * sum(map(len, paragraphs)), "no text is counted again and again"
