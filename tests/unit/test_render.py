"""The text of a context and the comment lines on it: sections in order, whole lines, tokens that add up."""

import json
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.render import (
    TextBlock,
    count_day_tokens,
    count_header_tokens,
    render,
    render_day_heading,
    render_frame_section,
    render_header,
    render_item,
)
from newton.cognition.bundles.debug import format_debug_lines
from newton.memory.representations import date_prefix, make_short_forms, one_line, split_date_prefix, to_bullet
from newton.providers import token_counter
from tests.unit.assembling import found
from tests.unit.test_replaying import bundle


def test_sections_come_in_the_design_s_order_and_empty_ones_are_left_out() -> None:
    # S002-12
    sections = {
        "episodes": [render_item("[2026-11-20] Ana: We met.", 14)],
        "frame": [TextBlock("## Current Approach: question\nConsider: Who says so?\n", 12)],
        "facts": [render_item("Ana lives in Lisbon.", 8)],
        "decisions": list[TextBlock](),
    }
    page = render(sections, header_tokens=count_header_tokens(token_counter.count))
    assert page.text == (
        "## Current Approach: question\n"
        "Consider: Who says so?\n"
        "## Known Information\n"
        "- Ana lives in Lisbon.\n"
        "## Past Experience\n"
        "- [2026-11-20] Ana: We met.\n"
    )


def test_the_sum_of_the_blocks_is_the_count_of_the_text() -> None:
    # S002-3
    said = ["We met at 9.", "Café “Zé” — naïve 日本", "a|b|c/d/e", "trailing dots..."]
    blocks = [render_item(line, token_counter.count(f"- {line}\n")) for line in said]
    frame = render_frame_section(
        "debug", ("What changed?", "Can I reproduce it?"), count_tokens=token_counter.count, max_tokens=500
    )
    page = render(
        {"frame": [frame], "facts": blocks, "episodes": blocks}, header_tokens=count_header_tokens(token_counter.count)
    )
    assert page.tokens == token_counter.count(page.text)


def test_an_approach_drops_questions_until_it_fits_and_never_speaks_of_choosing() -> None:
    # S002-13
    questions = ("What do I know for certain?", "What is the latest?", "What is unknown?")
    whole = render_frame_section("question", questions, count_tokens=token_counter.count, max_tokens=500)
    less = render_frame_section("question", questions, count_tokens=token_counter.count, max_tokens=whole.tokens - 1)
    assert whole.text.count("?") == 3
    assert less.text.count("?") == 2
    assert render_frame_section("question", questions, count_tokens=token_counter.count, max_tokens=3) == TextBlock(
        "", 0
    )
    titles = "".join(render_header(layer) for layer in count_header_tokens(token_counter.count)).lower()
    assert not any(word in titles for word in ("memor", "retriev", "select", "score", "rank"))
    cost = count_day_tokens(token_counter.count)
    assert cost.heading <= cost.prefix


def test_the_censors_of_a_frame_stand_in_its_section_and_outlast_its_questions() -> None:
    # S002-7
    barred = ("No rewrite from scratch.", "No new features while debugging.")
    whole = render_frame_section("debug", ("What changed?",), barred, count_tokens=token_counter.count, max_tokens=500)
    assert whole.text == (
        "## Current Approach: debug\nConsider: What changed?\n"
        "Constraints: No rewrite from scratch. No new features while debugging.\n"
    )
    less = render_frame_section(
        "debug", ("What changed?",), barred, count_tokens=token_counter.count, max_tokens=whole.tokens - 1
    )
    assert "Constraints: No rewrite" in less.text
    assert "Consider" not in less.text
    assert (
        render_frame_section("debug", (), barred, count_tokens=token_counter.count, max_tokens=10).text
        == "## Current Approach: debug\n"
    )


@given(st.dates(), st.text(min_size=1), st.text())
def test_a_day_costs_the_same_in_front_of_any_line_and_as_a_heading(day: date, speaker: str, said: str) -> None:
    # S002-3, S002-12: so a line's tokens without its day are known without counting
    in_front = date_prefix(day.isoformat())
    form = make_short_forms(said, count_tokens=token_counter.count, prefix=f"{in_front}{one_line(speaker)}: ").summary
    found, rest = split_date_prefix(form)
    assert found is not None
    cost = count_day_tokens(token_counter.count)
    assert (found, in_front + rest) == (day.isoformat(), form)
    assert token_counter.count(to_bullet(form)) - token_counter.count(to_bullet(rest)) == cost.prefix
    heading = render_day_heading(found, cost)
    assert token_counter.count(heading.text) == heading.tokens
    assert token_counter.count(
        to_bullet(rest) + heading.text + to_bullet(rest)
    ) == heading.tokens + 2 * token_counter.count(to_bullet(rest))


def test_each_sort_of_what_was_injected_has_its_line_with_its_first_words() -> None:
    # S004-14
    known = f"The harbour master is called Xylo. {'He is old. ' * 20}"
    made = bundle([found(kind="fact", summary=known, similarity=0.9), found(kind="passage", similarity=0.9)], focus=[])
    lines = format_debug_lines(made)
    assert [line.split(" ")[1] for line in lines] == ["FRAME_DEBUG", "RAG_DEBUG", "MEMORY_DEBUG"]
    assert json.loads(lines[0].split(" ", 2)[2])["frame"] == made.frame_choice.frame
    for line in lines[1:]:
        assert line.startswith(": ") and "\n" not in line
        told = json.loads(line.split(" ", 2)[2])
        assert told["tokens"] == sum(item["tokens"] for item in told["items"]) > 0
        assert all(0 < len(item["text"]) <= 60 for item in told["items"])
    assert "The harbour master is called Xylo. " in lines[2]
    assert [line.split(" ")[1] for line in format_debug_lines(bundle([], focus=[]))] == ["FRAME_DEBUG"]
