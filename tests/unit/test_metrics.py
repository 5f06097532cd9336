"""The figures of a period, computed by hand from planted turns."""

import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from newton.cognition.metrics.advice import ADVICE_BY_VERDICT
from newton.cognition.metrics.metrics import (
    ContextSample,
    FactConfirmationCounts,
    ItemSample,
    MetricPeriod,
    MetricTarget,
    MetricVerdict,
    QualityMetric,
    QualityReport,
    RatedUseCounts,
    TurnSample,
    compute_report,
)
from newton.content.frames import Frame
from newton.operations.contexts.metrics import format_report
from newton.runtime.cli.command_index import load_commands
from newton.runtime.dashboard.pages.overview import draw_metric
from newton.settings import Settings
from tests.support import NOON

REPORT = TypeAdapter(QualityReport)
ITEMS = (ItemSample(0.9, 0.5, True), ItemSample(0.5, 0.3, False))
SESSION = UUID(int=1)
KNOWN = FactConfirmationCounts(total=10, confirmed=3)
USES = RatedUseCounts(matches=20, false_positives=4, successes=6, failures=2)
UNUSED = RatedUseCounts(0, 0, 0, 0)


def context(number: int, **changed: object) -> ContextSample:
    plain = ContextSample(
        bundle_id=UUID(int=number),
        frame="question",
        is_frame_forced=False,
        profile="newton",
        budget=1_000,
        tokens=700,
        build_ms=20.0,
        items=ITEMS,
    )
    return replace(plain, **changed)  # pyright: ignore[reportArgumentType]  # named fields


def turn(number: int, held: ContextSample | None, **changed: object) -> TurnSample:
    plain = TurnSample(
        created_at=NOON - timedelta(minutes=100 - number),
        session_id=SESSION,
        is_first=number == 0,
        method="built",
        by_model=True,
        has_text=True,
        context=held,
    )
    return replace(plain, **changed)  # pyright: ignore[reportArgumentType]  # named fields


def found(
    *turns: TurnSample, facts: FactConfirmationCounts = KNOWN, uses: RatedUseCounts = USES, cost: int = 0
) -> QualityReport:
    made = {date(2026, 11, 20): {"fact": 10, "exchange": 25}}
    return compute_report(
        MetricPeriod(
            since=NOON - timedelta(days=7),
            until=NOON,
            turns=turns,
            memories_by_day=made,
            facts=facts,
            uses=uses,
            model_tokens=cost,
        )
    )


def figure(name: str, of: QualityReport) -> QualityMetric:
    (one,) = [figure for figure in of.metrics if figure.name == name]
    return one


WELL = [
    *(turn(n, context(n), method="built") for n in range(2)),
    *(turn(n, context(1), method="stood") for n in range(2, 12)),
]


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        # S002-22: every figure of the list
        ("context relevance", (0.9 + 0.5) / 2, 4),
        ("budget utilisation", 0.7, 2),
        ("refresh rate", 1 / 11, 11),
        ("recall precision", 0.5, 4),
        ("cold start, p95", 20.0, 2),
        ("memories a day", 35 / 7, 35),
        ("facts confirmed", 0.3, 10),
        ("mean cosine", 0.4, 4),
        ("censors right", 0.8, 20),
        ("procedures succeeded", 0.75, 8),
        ("contexts with additions only", 0.0, 11),
        ("context share of tokens", 12 * 700 / 20_000, 12),
    ],
)
def test_a_figure_is_what_it_is_by_hand(name: str, value: float, n: int) -> None:
    one = figure(name, found(*WELL, cost=20_000))
    assert (one.value, one.sample_size) == (pytest.approx(value), n)


@pytest.mark.parametrize(
    ("name", "wrong", "verdict"),
    [
        ("context relevance", {"items": (ItemSample(0.6, 0.9, True),)}, "low"),
        ("budget utilisation", {"tokens": 500}, "low"),
        ("budget utilisation", {"tokens": 900}, "high"),
        ("recall precision", {"items": (ItemSample(0.9, 0.9, False),)}, "low"),
        ("cold start, p95", {"build_ms": 500.0}, "high"),
    ],
)
def test_a_planted_error_is_judged(name: str, wrong: dict[str, object], verdict: MetricVerdict) -> None:
    # S002-22: the targets are open ends; on the line is missed
    assert figure(name, found(*(turn(n, context(n)) for n in range(12)))).verdict in ("ok", "too few")
    assert figure(name, found(*(turn(n, context(n, **wrong)) for n in range(12)))).verdict == verdict


def test_contexts_that_are_made_anew_at_each_turn_are_too_many_and_few_confirmations_too_few() -> None:
    often = found(*(turn(n, context(n)) for n in range(12)), facts=FactConfirmationCounts(10, 2))
    assert figure("refresh rate", often).verdict == "high"
    assert figure("facts confirmed", often).verdict == "low"
    assert figure("censors right", often).verdict == "low"
    assert figure("facts confirmed", found(facts=FactConfirmationCounts(4, 0))).verdict == "too few"


def test_advice_names_only_what_there_is() -> None:
    # S002-22
    nothing = found(facts=FactConfirmationCounts(0, 0), uses=UNUSED)
    assert {one.verdict for one in nothing.metrics if one.target} == {"too few"}
    assert "What may help" not in format_report(nothing)
    # a missed target is shown with what helps
    missed = found(*(turn(n, context(n, tokens=20)) for n in range(12)))
    shown = " ".join(format_report(missed).split())
    assert "budget utilisation 2 % 50 % to 90 % low 12 contexts" in shown
    assert "NEWTON_CONTEXT_TOKENS" in shown
    # advice names only what there is
    settings = {f"NEWTON_{name.upper()}" for name in Settings.model_fields}
    for said in ADVICE_BY_VERDICT.values():
        assert set(re.findall(r"NEWTON_[A-Z_]+", said)) <= settings
        for named in re.findall(r"`([^`]+)`", said):
            program, _, command = named.partition(" ")
            if not named.startswith("/"):
                known = load_commands() if command else Frame.model_fields
                assert (command.split()[0] if command else program) in known
    said = ADVICE_BY_VERDICT["context relevance", "low"]
    assert "`relevance_floor`" in said and "NEWTON_CONTEXT_TOKENS" not in said


def test_figures_of_use_count_what_was_shown() -> None:
    other = tuple(replace_used(item, not item.is_used) for item in ITEMS)
    stood = found(turn(0, context(1)), turn(1, context(1, items=other), method="stood"))
    assert (figure("recall precision", stood).value, figure("recall precision", stood).sample_size) == (1.0, 2)
    assert figure("recall precision", found(turn(0, context(1), has_text=False))).sample_size == 0
    assert figure("context relevance", found(turn(0, context(1), has_text=False))).sample_size == 2
    gone = found(turn(0, None), turn(1, None, method="stood"), turn(2, None, method="built"))
    assert figure("refresh rate", gone).value == 0.5
    assert figure("cold start, p95", gone).value is None
    times = [turn(n, context(n, build_ms=900.0 if n > 17 else 10.0)) for n in range(20)]
    assert figure("cold start, p95", found(*times)).value == 900.0
    assert figure("cold start, p95", found(*[replace(one, method="updated") for one in times])).value is None


def replace_used(item: ItemSample, used: bool) -> ItemSample:
    return item._replace(is_used=used)


def test_figures_stand_by_frame_profile_and_day() -> None:
    mixed = found(turn(0, context(1)), turn(1, context(2, frame="debug", profile="coding", tokens=100)))
    assert [(group.name, group.turns) for group in mixed.frames] == [("debug", 1), ("question", 1)]
    assert [group.metrics[1].value for group in mixed.profiles] == [0.1, 0.7]
    assert [group.name for group in mixed.days] == [f"{NOON:%Y-%m-%d}"]
    # the overview draws the days from the first to the last
    early = turn(0, context(1, tokens=200), created_at=NOON - timedelta(days=3))
    report: dict[str, Any] = REPORT.dump_python(found(early, turn(1, context(2, tokens=800))), mode="json")
    (metric,) = [one for one in report["metrics"] if one["name"] == "budget utilisation"]
    chart = draw_metric(report, metric, 0, (0.5, 0.9))
    assert "from 0.2 to 0.8" in chart
    assert ">50 %</text>" in chart, "the ends of the target range are labelled"
    # a frame that a person puts in the place of another was wrong first
    forced = context(2, frame="debug", is_frame_forced=True)
    wrong = found(turn(0, context(1)), turn(1, forced), turn(2, context(3)))
    assert figure("frames corrected", wrong).value == 0.5
    kept = found(turn(0, context(1)), turn(1, replace(forced, frame="question")))
    assert figure("frames corrected", kept).value == 0.0
    elsewhere = found(turn(0, context(1)), turn(1, forced, session_id=UUID(int=2)))
    assert figure("frames corrected", elsewhere).value == 0.0


@given(st.floats(0, 2), st.floats(0, 1), st.floats(0, 1), st.integers(0, 20))
def test_a_verdict_is_ok_only_between_its_ends(value: float, one: float, other: float, n: int) -> None:
    above, below = min(one, other), max(one, other)
    judged = QualityMetric(
        name="x", value=value, sample_size=n, sample_unit="y", target=MetricTarget(above, below)
    ).verdict
    assert (judged == "ok") == (n >= 10 and above < value < below)
