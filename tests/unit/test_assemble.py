"""Lines under their day: what is said once, what comes first, and that the sum stays the count."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.assembler import AssemblyResult, assemble
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import allocate_budget, reserve_layer
from newton.cognition.assembly.render import (
    FENCE_BEGIN,
    FENCE_END,
    TextBlock,
    count_day_tokens,
    count_header_tokens,
)
from newton.cognition.assembly.sections import CensorSection, IdentitySection
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.content.profiles import load_profiles
from newton.memory.memory import Kind
from newton.memory.representations import date_prefix, make_short_forms, to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.providers import token_counter

MAY = datetime(2026, 5, 8, 9, tzinfo=UTC)
THREAD = UUID(int=7)
PROFILE = load_profiles()["evidence"]


def found(number: int, said: str, *, day: int = 0, kind: Kind = "exchange", dated: bool = True) -> RetrievedMemory:
    at = MAY + timedelta(days=day)
    form = make_short_forms(
        said, count_tokens=token_counter.count, prefix=date_prefix(f"{at:%Y-%m-%d}") if dated else ""
    )
    lines = (THREAD, number) if kind == "exchange" else (None, None)
    return RetrievedMemory(
        UUID(int=number), kind, "ACTIVE", form.micro, form.summary, form.micro_tokens, form.summary_tokens, 5,
        None, None, None, 0, at, at, None, None, "user", False, None, *lines, 0.9, 0.5, 1.0,
    )  # fmt: skip


def told(*best_first: RetrievedMemory, budget: int = 8_000, order: str = "best_first") -> AssemblyResult:
    scored = [ScoredMemory(f, (1.0,) * len(FEATURE_NAMES), 1 - n / 100) for n, f in enumerate(best_first)]
    setting = AssemblyInput(
        input="?",
        budget=reserve_layer(allocate_budget(budget), "documents", 1_000),
        profile=PROFILE.model_copy(update={"order": order}),
        identity=IdentitySection(),
        min_evidence=0.0,
        is_adaptive=False,
        frame_section=TextBlock("", 0),
        censors=CensorSection(),
        focus=(),
        open_decisions=(),
        calibration_note=None,
        triggered=frozenset(),
        unranked=frozenset(),
        extra=(),
        sent_messages=None,
        header_tokens=count_header_tokens(token_counter.count),
        day_tokens=count_day_tokens(token_counter.count),
    )
    return assemble(scored, setting)


def lines(assembly: AssemblyResult) -> Sequence[str]:
    return assembly.block.text.splitlines()


def test_a_date_stands_once_over_its_lines_which_come_as_they_were_said() -> None:
    # S002-12
    best = found(5, "Ana: To Lisbon.", day=1)
    shown = told(best, found(2, "Bo: Hi."), found(4, "Bo: Where to?", day=1), found(1, "Ana: Hello."))
    assert lines(shown) == [
        "## Past Experience",
        "2026-05-08:",
        "- Ana: Hello.",
        "- Bo: Hi.",
        "2026-05-09:",
        "- Bo: Where to?",
        "- Ana: To Lisbon.",
    ]
    assert shown.candidates[0].text == "[2026-05-09] Ana: To Lisbon."  # with its day for who asks


@pytest.mark.parametrize(
    ("order", "days"),
    [
        ("best_first", ["2026-05-08:", "2026-05-09:", "2026-05-10:"]),
        ("best_last", ["2026-05-09:", "2026-05-08:", "2026-05-10:"]),
        ("chronological", ["2026-05-08:", "2026-05-09:", "2026-05-10:"]),
        ("edges", ["2026-05-10:", "2026-05-09:", "2026-05-08:"]),
    ],
)
def test_days_come_in_the_order_of_the_profile(order: str, days: list[str]) -> None:
    shown = told(found(3, "C: c.", day=2), found(1, "A: a."), found(2, "B: b.", day=1), order=order)
    assert [line for line in lines(shown) if line.endswith(":") and line.startswith("2026")] == days


def test_what_spans_a_day_stands_before_its_lines_and_what_tools_did_behind_all_days() -> None:
    event = found(9, "The office moved.", kind="event", dated=False)
    shown = told(found(1, "Ana: Hi."), found(8, "Moving: they packed.", kind="episode"), event)
    fenced = [FENCE_BEGIN.strip(), "- The office moved.", FENCE_END.strip()]
    assert lines(shown)[1:] == ["2026-05-08:", "- Moving: they packed.", "- Ana: Hi.", *fenced]


def test_other_sections_keep_their_dates() -> None:
    shown = told(found(1, "Water boils at 100.", kind="passage"))
    assert lines(shown) == ["## From Documents", "- [2026-05-08] Water boils at 100."]


SAID = st.lists(
    st.tuples(
        st.text(max_size=400).map(lambda text: f"Ana: {text}"),
        st.integers(0, 3),
        st.sampled_from(["exchange", "episode"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(SAID, st.integers(1, 900), st.sampled_from(["best_first", "best_last", "edges", "chronological"]))
def test_the_tokens_add_up_and_never_pass_the_budget(
    said: list[tuple[str, int, Kind, bool]], budget: int, order: str
) -> None:
    # S002-3, S002-12
    every = [found(n, text, day=day, kind=kind, dated=dated) for n, (text, day, kind, dated) in enumerate(said)]
    shown = told(*every, budget=budget, order=order)
    assert shown.block.tokens == token_counter.count(shown.block.text) <= budget
    inside = [c for c in shown.candidates if c.detail]
    assert shown.block.text.count("\n- ") == len(inside)
    assert all(to_bullet(c.context_line) in shown.block.text for c in inside)
    assert len({c.day for c in inside if c.day}) == sum(line.startswith("2026-") for line in lines(shown))
