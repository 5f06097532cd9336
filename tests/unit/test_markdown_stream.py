"""Replies in a terminal: Markdown is rendered while it is received, and what was printed stays as it is."""

import re
from collections.abc import Sequence

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newton.runtime.cli.markdown.reply_streams import MarkdownStream, WrappedStream
from newton.runtime.cli.printing import visible

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
SAMPLE = f"""\
# The plan

Take **the early ferry** to *Hydra*, see `timetable(1)` and [the page](https://example.org/ferry).
1. {LONG}
   - [ ] nested

> quoted

```python
def sail(island: str) -> None:
    '''Sail
    there.'''
```
| Island | Price |
|:--|--:|
| **Hydra** | 12 |
| Aegina | 8 |

The end, 2 * 3 * 4 and snake_case_name.
"""
CURSOR_MOVES = re.compile(r"\x1b\[[0-9;?]*[^0-9;?m]")


def rendered(*pieces: str, columns: int = 80, has_colors: bool = True) -> str:
    stream = MarkdownStream(count_columns=lambda: columns, has_colors=has_colors)
    return "".join([*(stream.add(piece) for piece in pieces), stream.finish()])


def shown(*pieces: str, columns: int = 80, has_colors: bool = True) -> list[str]:
    """The rows of a terminal that was sent the pieces of a reply."""
    return on_screen(rendered(*pieces, columns=columns, has_colors=has_colors), columns)


def on_screen(output: str, columns: int = 80) -> list[str]:
    assert not CURSOR_MOVES.search(output)
    screen = pyte.Screen(columns, 400)
    pyte.Stream(screen).feed(output.replace("\n", "\r\n"))
    rows = [row.rstrip() for row in screen.display]
    return rows[: max((place for place, row in enumerate(rows, 1) if row), default=0)]


def test_blocks_are_rendered() -> None:
    assert shown(SAMPLE, has_colors=False) == [
        "The plan",
        "",
        "Take the early ferry to Hydra, see `timetable(1)` and the page",
        "(https://example.org/ferry).",
        "1. one two three four five six seven eight nine ten eleven twelve thirteen",
        "   fourteen fifteen sixteen seventeen",
        "   ☐ nested",
        "",
        "│ quoted",
        "",
        "── python ──────────────────────────────────────────────────",
        "def sail(island: str) -> None:",
        "    '''Sail",
        "    there.'''",
        "─" * 60,
        "",
        "Island   Price",
        "──────────────",
        "Hydra       12",
        "Aegina       8",
        "",
        "The end, 2 * 3 * 4 and snake_case_name.",
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, len(SAMPLE)), max_size=30))
def test_the_output_does_not_depend_on_how_the_reply_is_cut_into_pieces(places: Sequence[int]) -> None:
    ends = sorted({*places, len(SAMPLE)})
    pieces = [SAMPLE[first:end] for first, end in zip([0, *ends], ends, strict=False)]
    assert rendered(*pieces) == rendered(SAMPLE)


MARKS = ["**", "*", "`x` ", "\n", "\n\n", "- ", "1. ", "> ", "```\n", "| a | b |\n", "|--|--|\n", "[", "](x)", "# "]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(MARKS), st.just("word ")), max_size=60), st.integers(1, 9))
def test_no_word_is_lost_or_repeated_whatever_the_marks(parts: Sequence[str], size: int) -> None:
    text = "".join(part.replace("word", f"word{number}q") for number, part in enumerate(parts))
    output = rendered(*(text[place : place + size] for place in range(0, len(text), size)), columns=40)
    words = re.sub(r"\x1b\[[0-9;]*m|[\s│]", "", output)
    assert sorted(re.findall(r"word\d+q", words)) == sorted(re.findall(r"word\d+q", text))


@pytest.mark.parametrize(
    ("pieces", "bold"),
    [(("a **bo", "ld** c"), "bold"), (("a *", "*bo", "ld*", "* c"), "bold"), (("a **b c", " d** e"), "b c d")],
)
def test_an_emphasis_that_is_cut_into_pieces_is_shown_when_it_is_complete(pieces: Sequence[str], bold: str) -> None:
    stream = MarkdownStream(count_columns=lambda: 80, has_colors=True)
    screen = pyte.Screen(80, 24)
    printed = pyte.Stream(screen)
    for piece in pieces:
        printed.feed(stream.add(piece))
        assert "*" not in screen.display[0]
    printed.feed(stream.finish())
    row = screen.buffer[0]
    assert "".join(row[x].data for x in range(80) if row[x].bold and row[x].data != " ") == bold.replace(" ", "")


def test_the_row_in_progress_is_pending_and_what_is_held_back_is_released_at_a_status_line() -> None:
    stream = MarkdownStream(count_columns=lambda: 20, has_colors=True)
    assert (stream.add("It is the goddess of"), stream.pending) == ("", "It is the goddess of"[:-1])
    assert (stream.add(" the *hu"), stream.pending) == ("It is the goddess of\n", "the *hu")
    assert stream.add("nt and of all the wild") == "", "a row with an open emphasis may change"
    assert (stream.release(), stream.pending) == ("the *hunt and of all\nthe wild", "")
    assert stream.add(".\n\n") + stream.finish() == "."


def test_what_does_not_fit_is_broken() -> None:
    columns = 80
    stream = MarkdownStream(count_columns=lambda: columns, has_colors=True)
    output = stream.add("- one two three four five six\n- seven")
    columns = 20
    output += stream.add(f"\n- {LONG}") + stream.finish()
    lines = output.split("\n")
    assert lines[:2] == ["• one two three four five six", "• seven"]
    assert max(map(len, lines[1:])) <= 20
    # a table that does not fit is printed row by row and a single row is text
    table = "| A | B | C | D |\n|--|--|--|--|\n| 1 | 2 | 3 | `4` |\n| 5 | 6 | 7 | 8 |\n"
    assert shown(table, columns=40) == ["A: 1", "B: 2", "C: 3", "D: 4", "", "A: 5", "B: 6", "C: 7", "D: 8"]
    assert shown("| no table\nat all") == ["| no table", "at all"]
    assert shown("| A |\n|--|\n| a **b", r"c** <br> `d\|e` |") == ["A", "────", "a bc", "d|e"]
    # text without spaces is broken within and an address is not
    assert shown("中文字符没有空格所以", columns=12) == ["中文字符没有", "空格所以"]
    assert shown("字符，没有。", columns=5) == ["字", "符，", "没", "有。"]
    address = "https://example.org/" + "x" * 60
    stream = MarkdownStream(count_columns=lambda: 40, has_colors=True)
    assert stream.add(f"see {address}\n") + stream.finish() == f"see\n{address}"
    assert rendered(f"- see {address}", columns=40) == f"• see\n  {address}"


@pytest.mark.parametrize(
    "text", ["a\x1b[2Jb", "**\x1b]52;c;cm0=\x07**", "`\x9b31m`", "| \x1b[1A |\n|--|\n| \x1b[2J |\n"]
)
def test_control_characters_and_entities_of_them_are_escaped(text: str) -> None:
    for written in (text, text.replace("\x1b", "&#27;&#x202e;&#13;")):
        printed = re.sub(r"\x1b\[[0-9;]*m", "", rendered(visible(written), has_colors=False))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed)


def test_without_colors_there_are_styles_and_no_colors() -> None:
    stream = MarkdownStream(count_columns=lambda: 80, has_colors=False)
    output = stream.add(SAMPLE) + stream.finish()
    assert set(re.findall(r"\x1b\[([0-9;]*)m", output)) <= {"0", "1", "2", "3", "4", "9", "1;4"}


def test_plain_text_is_only_wrapped_and_all_lines_are_printed() -> None:
    assert shown("````\n```\nx") == ["─" * 60, "```", "x", "─" * 60]
    assert shown("> ```\n> a\n\nb") == ["│ " + "─" * 60, "│ a", "│ " + "─" * 60, "", "b"]
    text = "\n".join(f"- line **{number}** of the reply" for number in range(300))
    assert shown(text) == [f"• line {number} of the reply" for number in range(300)]
    # plain text is only wrapped
    pieces = [SAMPLE[place : place + 3] for place in range(0, len(SAMPLE), 3)]
    stream = WrappedStream(count_columns=lambda: 40)
    output = "".join([*(stream.add(piece) for piece in pieces), stream.finish()])
    assert "\x1b" not in output and output.split() == SAMPLE.split()
    assert "1. one two three four five six seven\n   eight nine ten" in output
    assert "    '''Sail\n    there.'''\n```\n| Island | Price |" in output
