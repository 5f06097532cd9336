"""How a calibration looks: 80 columns of plain text, one page that needs nothing else, JSON for programs."""

import itertools
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.calibration.report import build_calibration, filter_decisions
from newton.brain.drafts import ReviewedDecision, Verdict
from newton.errors import InputError
from newton.operations.decisions import calibration_text
from newton.runtime.reports import html_sections
from tests.support import examples
from tests.unit.judging import PAIRS, as_record, drawn, judged, record, to_json

NASTY = '<script>alert("x")</script> & \x1b[31mred\nline'


def overconfident(n: int) -> list[ReviewedDecision]:
    rng = np.random.default_rng(7)
    stated = rng.uniform(0.5, 1, n)
    return as_record(drawn(rng, stated, stated - 0.3))


def drawings(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)]


@given(st.lists(st.tuples(PAIRS, st.text(max_size=30)), max_size=60))
@examples(16)
def test_no_line_is_longer_than_a_terminal(pairs: list[tuple[tuple[float, Verdict], str]]) -> None:
    known = [judged(place, *pair, category=name) for place, (pair, name) in enumerate(pairs)]
    lines = calibration_text.render_calibration(build_calibration(known)).split("\n")
    assert max(len(line) for line in lines) <= calibration_text.WIDTH
    assert all(line.isprintable() for line in lines)


def test_the_diagram_puts_stated_and_true_where_they_are() -> None:
    even: list[tuple[float, Verdict]] = [(0.9, "success"), (0.9, "failure")]
    low_ones: list[tuple[float, Verdict]] = [(0.25, "failure")]
    found = build_calibration(record([*even * 8, *low_ones * 4])).scores
    assert found is not None
    _, scale, low, high, key = calibration_text.render_diagram(found.bins)
    assert scale.index("100 %") - scale.index("0 %") == calibration_text.AXIS_STEPS
    start = scale.index("0 %")
    assert (low[start], low.index("○")) == ("●", start + 10)
    assert (high.index("●"), high.index("○")) == (start + 20, start + 36)
    assert high.index("├") < high.index("●") < high.index("┤") < high.index("○")
    assert high.startswith("0.9-1.0     16  ")
    assert high.endswith("  50 %  (28-72)")
    assert "○ stated" in key


def test_the_whole_is_told_with_its_verdicts_and_too_little_says_so() -> None:
    told = calibration_text.render_calibration(build_calibration(overconfident(300)))
    assert "300 decisions reviewed" in told
    assert ": overconfident" in told
    assert re.search(r"on the 100 later ones 0\.\d+ as stated", " ".join(told.split()))
    assert "  stated       50 %" in told
    assert calibration_text.render_calibration(build_calibration([])).startswith("No decision is reviewed yet.")
    told = calibration_text.render_calibration(build_calibration(overconfident(12)))
    assert "an interval needs 20 reviews" in told
    assert "A trend needs 40 reviews; there are 12." in told
    assert "A correction needs 30 reviews; there are 12." in told


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_the_sections_need_nothing_else() -> None:
    known = [judged(place, 0.9, "failure", category=NASTY) for place in range(60)]
    html = html_sections.render_calibration_sections(build_calibration(known))
    read = Page()
    read.feed(html)
    assert not read.tags & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert not read.attributes & {"src", "href", "srcset", "style", "onload", "onclick"}
    assert not re.search(r"https?://|url\(|@import", html)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 1  # the category


def test_each_plot_says_what_it_shows_and_has_its_marks_inside_and_apart() -> None:
    shown = drawings(html_sections.render_calibration_sections(build_calibration(overconfident(300))))
    assert len(shown) == 3
    for drawing in shown:
        title, told = drawing.find("title"), drawing.find("desc")
        assert title is not None and told is not None and title.text and told.text
        assert drawing.get("aria-labelledby") == f"{title.get('id')} {told.get('id')}"
        left, top, wide, high = (float(part) for part in str(drawing.get("viewBox")).split())
        for mark in drawing.iter():
            for x, y in (("cx", "cy"), ("x", "y"), ("x1", "y1")):
                if mark.get(x) is not None:
                    assert left <= float(str(mark.get(x))) <= left + wide
                    assert top <= float(str(mark.get(y))) <= top + high
    tops = [float(dot.get("cy", "")) - float(dot.get("r", "")) for dot in shown[0].iter("circle")]
    counts = [text for text in shown[0].iter("text") if text.get("class") == "count"]
    assert len(counts) == len(tops) > 3
    assert all(float(text.get("y", "")) < min(-9.0, *tops) for text in counts), "no count is behind a dot"
    places = [float(text.get("x", "")) for text in counts]
    assert all(after - before >= 39 for before, after in itertools.pairwise(places)), "none is on another"


def test_a_table_names_its_columns_in_each_cell_for_narrow_screens() -> None:
    html = html_sections.render_table(("group", "n"), [("<b>", "3")], numeric_columns={1})
    assert '<td data-label="group">&lt;b&gt;</td><td class="number" data-label="n">3</td>' in html


@given(st.lists(PAIRS, max_size=60))
@examples(12)
def test_every_record_makes_a_page_and_json(pairs: list[tuple[float, Verdict]]) -> None:
    whole = build_calibration(record(pairs))
    told = json.loads(json.dumps(to_json(whole), allow_nan=False))
    assert told["n"] == len(pairs)
    assert len(drawings(html_sections.render_calibration_sections(whole))) == (
        0 if not pairs else 3 if len(pairs) >= 40 else 2
    )


def test_a_record_is_narrowed_by_category_and_date() -> None:
    known = [judged(place, 0.9, "success", category="ops" if place % 2 else "code") for place in range(48)]
    assert len(filter_decisions(known, category=None, since=None)) == 48
    later = filter_decisions(known, category="ops", since=known[24].decided_at)
    assert [one.decision_id.int for one in later] == list(range(25, 48, 2))
    with pytest.raises(InputError, match="'opz'") as refused:
        filter_decisions(known, category="opz", since=None)
    assert refused.value.hint == "Known categories: code, ops."
