"""Mistakes made again, the rules of the report of growth, and how it looks."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.growth.report import GrowthReport, PeriodMetric, build_growth_report
from newton.agent.growth.rules import GrowthAssessment, assess
from newton.brain.draft import NEAR_COSINE, ReviewedDecision
from newton.brain.growth_queries import DecisionCounts
from newton.brain.growth_queries import DecisionGrowth as Brain
from newton.brain.outcomes import Verdict
from newton.brain.repeated_mistakes import (
    MAX_NEAREST,
    NEAR_COSINE_DEFAULT_KIND,
    NEAR_COSINE_SHARED,
    AssessedPair,
    DecisionVector,
    FailurePair,
    RepeatReport,
    find_near_failures,
    summarize_repeats,
)
from newton.heart.growth_queries import (
    CensorCounts,
    EpisodeCounts,
    FactGrowthCounts,
    MemoryStateChange,
    ProcedureCounts,
)
from newton.heart.growth_queries import MemoryGrowth as Heart
from newton.memory.times.time_expressions import ReportPeriods
from newton.runtime.reports import growth as shown
from tests.support import NOON
from tests.unit.judging import judged
from tests.unit.test_calibration_shown import NASTY, Page

HOUR, WEEK = timedelta(hours=1), timedelta(weeks=1)
PERIODS = ReportPeriods(NOON - 2 * WEEK, NOON - WEEK, NOON)


@st.composite
def lives(draw: st.DrawFn) -> list[DecisionVector]:
    """Decisions on a circle, so that their cosines are spread."""
    number = draw(st.integers(0, 25))
    return [
        DecisionVector(
            decision_id=UUID(int=place),
            decided_at=NOON + place * HOUR,
            reviewed_at=NOON + (place + draw(st.integers(0, 5))) * HOUR,
            outcome=draw(st.sampled_from(("failure", "failure", "failure", "success", None))),
            category=draw(st.sampled_from("ab")),
            reason_kinds=draw(st.frozensets(st.sampled_from(("analysis", "intuition", "authority")))),
            vector=None if angle is None else np.array([np.cos(angle), np.sin(angle)], dtype=np.float32),
        )
        for place, angle in enumerate(draw(st.lists(st.none() | st.floats(0, 3), min_size=number, max_size=number)))
    ]


def known_and_like(one: DecisionVector, other: DecisionVector) -> float | None:
    """The cosine of a decision and an earlier one of known outcome that is like it."""
    if one.vector is None or other.vector is None or other.reviewed_at is None:
        return None
    if other.reviewed_at > one.decided_at or other.decided_at >= one.decided_at:
        return None
    if not one.reason_kinds or not one.reason_kinds <= other.reason_kinds:
        return None
    cosine = float(one.vector @ other.vector)
    least = NEAR_COSINE_DEFAULT_KIND if one.reason_kinds == frozenset({"analysis"}) else NEAR_COSINE_SHARED
    return cosine if cosine >= (least if one.category == other.category else NEAR_COSINE) else None


def one_by_one(made: list[DecisionVector], since: int) -> list[tuple[UUID, list[float]]]:
    """The same without columns: for each decision the cosines of its nearest known failures."""
    found: list[tuple[UUID, list[float]]] = []
    for one in made[since:]:
        like = [(other.outcome, cosine) for other in made if (cosine := known_and_like(one, other)) is not None]
        cosines = [cosine for outcome, cosine in like if outcome == "failure"]
        if cosines and not any(outcome == "success" for outcome, _ in like):
            found.append((one.decision_id, sorted(cosines, reverse=True)[:MAX_NEAREST]))
    return found


@given(lives(), st.integers(0, 25))
def test_the_nearest_known_failures_are_found(made: list[DecisionVector], since: int) -> None:
    found: dict[UUID, list[float]] = {}
    for near in find_near_failures(made, since=NOON + since * HOUR):
        found.setdefault(near.decision_id, []).append(near.cosine)
    plain = one_by_one(made, since)
    assert list(found) == [decision_id for decision_id, _ in plain]
    for decision_id, cosines in plain:
        assert found[decision_id] == pytest.approx(cosines, abs=1e-6)


def made(number: int, outcome: Verdict | None = None) -> DecisionVector:
    vector = np.ones(1, dtype=np.float32)
    at = NOON - (10 - number) * HOUR
    return DecisionVector(
        decision_id=UUID(int=number),
        decided_at=at,
        reviewed_at=None,
        outcome=outcome,
        category="a",
        vector=vector,
        reason_kinds=frozenset(),
    )


def weighed(
    number: int, *, outcome: Verdict | None = None, answered: bool = False, shown: bool = False
) -> AssessedPair:
    near = FailurePair(UUID(int=number), UUID(int=99), 0.8)
    return AssessedPair(
        pair=near,
        decided_at=NOON,
        outcome=outcome,
        description=NASTY,
        failed_description=None,
        answered=answered,
        shown=shown,
    )


def test_who_answered_was_shown_or_succeeded_repeats_no_mistake() -> None:
    own = [made(number) for number in range(8)]
    pairs = [
        weighed(0),
        weighed(1, outcome="success"),
        weighed(2, outcome="failure"),
        weighed(3),
        weighed(3, answered=True),
        weighed(4, shown=True),
        weighed(5, outcome="partial"),
        weighed(6, outcome="success", answered=True),
        weighed(9),
    ]
    known = summarize_repeats([*own, replace(made(8), vector=None)], pairs)
    assert (known.compared, known.missing, known.near, known.answered) == (8, 1, 5, 2)
    assert [one.pair.decision_id.int for one in known.repeated] == [0, 2]


UNMET, UNLEARNT = CensorCounts(0, 0, 0, 0), FactGrowthCounts(0, 0, 0, 0, 0, 0)
NOTHING = RepeatReport(compared=0, missing=0, near=0, answered=0, repeated=())


def brain(*known: ReviewedDecision, overdue: int = 0, of: RepeatReport = NOTHING, number: int = 0) -> Brain:
    now = DecisionCounts(made=number, overdue=overdue, repeats=of)
    return Brain(reviewed=known, now=now, before=DecisionCounts(made=0, overdue=0, repeats=NOTHING), overdue=())


def heart(
    *changed: MemoryStateChange,
    met: CensorCounts = UNMET,
    learnt: FactGrowthCounts = UNLEARNT,
    followed: tuple[ProcedureCounts, ...] = (),
) -> Heart:
    return Heart(censors=met, procedures=followed, facts=learnt, episodes=EpisodeCounts(0, 0), state_changes=changed)


def went(
    outcome: Verdict, times: int, *, sure: float = 0.7, weeks_ago: int = 0, first: int = 0
) -> list[ReviewedDecision]:
    """Judged in the middle of a week."""
    at = NOON - weeks_ago * WEEK - timedelta(days=3)
    return [replace(judged(first + n, sure, outcome), decided_at=at - HOUR, reviewed_at=at) for n in range(times)]


def changed(state: str, name: str, *, days: int = 1) -> MemoryStateChange:
    return MemoryStateChange(NOON - timedelta(days=days), "procedure", state, UUID(int=5), name, "of its record")


def told(one: Brain, other: Heart | None = None) -> GrowthAssessment:
    return assess(build_growth_report(PERIODS, one, other or heart()))


def repeating(compared: int, repeated: int, *, answered: int = 0, shown: int = 0, missing: int = 0) -> Brain:
    pairs = tuple(weighed(number) for number in range(repeated))
    near = repeated + answered + shown
    return brain(of=RepeatReport(compared=compared, missing=missing, near=near, answered=answered, repeated=pairs))


STRONG, WEAK, ADVICE = "strengths", "concerns", "recommendations"


@pytest.mark.parametrize(
    ("report", "where", "said"),
    [
        (lambda: told(brain(*went("success", 5))), STRONG, "100 % of 5 reviewed decisions succeeded."),
        (lambda: told(brain(*went("failure", 5))), WEAK, "Only 0 % of 5 reviewed decisions succeeded."),
        (
            lambda: told(brain(*went("success", 5), *went("failure", 5, weeks_ago=1, first=5))),
            STRONG,
            "More decisions succeeded than before: 0 % before, 100 % now.",
        ),
        (
            lambda: told(brain(*went("failure", 5), *went("success", 5, weeks_ago=1, first=5))),
            WEAK,
            "Fewer decisions succeeded than before: 100 % before, 0 % now.",
        ),
        (
            lambda: told(brain(*went("success", 14), *went("failure", 6, first=14))),
            STRONG,
            "Stated confidence can be trusted: no sign of a bias in 20 reviews.",
        ),
        (
            lambda: told(brain(*went("failure", 20, sure=0.9))),
            WEAK,
            "Overconfident: the average stated confidence is 90 %, but 0 % of the decisions succeeded (20 reviews).",
        ),
        (
            lambda: told(brain(*went("success", 20, sure=0.3))),
            ADVICE,
            "State more confidence: `newton calibration` compares stated confidence with outcomes.",
        ),
        (lambda: told(repeating(10, 2)), WEAK, "20 % of 10 decisions repeat a mistake; the target is under 10 %."),
        (
            lambda: told(repeating(10, 0, answered=1)),
            STRONG,
            "1 decision was similar to a known failure, and all responded to it.",
        ),
        (lambda: told(repeating(10, 1, shown=2)), ADVICE, "2 decisions were shown a similar failure and did not"),
        (lambda: told(repeating(9, 0, missing=2)), ADVICE, "2 decisions have no embedding vector, so repeated"),
        (lambda: told(brain(overdue=3)), ADVICE, "3 decisions wait for an outcome: `newton decisions list --due`."),
        (lambda: told(brain(number=2)), ADVICE, "No decision was reviewed; record an outcome"),
        (
            lambda: told(brain(), heart(met=CensorCounts(10, 1, 0, 0))),
            STRONG,
            "Censors were right in 90 % of 10 cases.",
        ),
        (
            lambda: told(brain(), heart(met=CensorCounts(20, 3, 0, 0))),
            WEAK,
            "Censors were right in only 85 % of 20 cases",
        ),
        (
            lambda: told(brain(), heart(met=CensorCounts(20, 3, 0, 0))),
            ADVICE,
            "Retire or narrow the censors with false positives",
        ),
        (lambda: told(brain(), heart(changed("EFFECTIVE", "tea"))), STRONG, "Procedures that became effective: tea."),
        (lambda: told(brain(), heart(changed("INEFFECTIVE", "tea"))), WEAK, "Procedures that became ineffective: tea."),
        (
            lambda: told(brain(), heart(learnt=FactGrowthCounts(10, 0, 3, 0, 0, 0))),
            STRONG,
            "30 % of 10 facts were confirmed.",
        ),
        (
            lambda: told(brain(), heart(learnt=FactGrowthCounts(10, 0, 2, 0, 0, 0))),
            WEAK,
            "Only 20 % of 10 facts were confirmed",
        ),
        (lambda: told(brain(), heart(learnt=FactGrowthCounts(10, 0, 2, 0, 0, 0))), ADVICE, "Confirm the facts"),
    ],
)
def test_a_rule_says_its_sentence(report: Callable[[], GrowthAssessment], where: str, said: str) -> None:
    sentences: tuple[str, ...] = getattr(report(), where)
    assert any(sentence.startswith(said) for sentence in sentences), sentences


def test_the_brier_score_is_said_to_rise_or_fall_only_for_certain() -> None:
    good, bad = went("success", 40, sure=0.9, weeks_ago=5), went("failure", 40, sure=0.9, first=40)
    assert "The Brier score rises: stated confidence is becoming less accurate." in told(brain(*good, *bad)).concerns
    good, bad = went("success", 40, sure=0.9, first=40), went("failure", 40, sure=0.9, weeks_ago=5)
    assert "The Brier score falls: stated confidence is becoming more accurate." in told(brain(*bad, *good)).strengths
    even = told(brain(*went("success", 40, sure=0.9)))
    assert not any("Brier" in sentence for sentence in (*even.strengths, *even.concerns))


def test_a_repeated_mistake_is_named_with_what_to_do() -> None:
    (advice,) = told(repeating(30, 1)).recommendations
    assert advice.startswith("Read the earlier failure: `newton decisions show 00000063`")
    assert told(repeating(10, 1)).concerns == ()
    assert told(repeating(10, 0, answered=1, shown=1)).strengths == ()


def test_too_little_says_nothing() -> None:
    few = told(
        brain(*went("failure", 4), of=repeating(4, 4).now.repeats),
        heart(met=CensorCounts(4, 4, 0, 0), learnt=FactGrowthCounts(4, 4, 0, 0, 0, 0)),
    )
    assert (few.strengths, few.concerns) == ((), ())
    assert told(brain(*went("success", 5), *went("failure", 4, weeks_ago=1, first=5))).strengths == (
        "100 % of 5 reviewed decisions succeeded.",
    )


def test_a_procedure_counts_by_what_it_is_in_the_end() -> None:
    said = told(brain(), heart(changed("INEFFECTIVE", "tea", days=3), changed("EFFECTIVE", "tea")))
    assert (said.strengths, said.concerns) == (("Procedures that became effective: tea.",), ())


def full() -> GrowthReport:
    one = brain(*went("failure", 45, sure=0.9), overdue=2, of=repeating(10, 8, missing=1).now.repeats)
    other = heart(changed("INEFFECTIVE", NASTY), followed=(ProcedureCounts("a|b", 9, 5, 1, 0, 0, 0),))
    return build_growth_report(PERIODS, one, other)


def test_tables_are_markdown_whose_columns_stand_below_each_other() -> None:
    text = shown.render_markdown(full(), assess(full()), agent=NASTY)
    assert all(line.isprintable() for line in text.split("\n"))
    tables = [part.split("\n") for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 4, "those of decisions, repeated mistakes and procedures, and the list of procedures"
    for table in tables:
        assert len({len(line) for line in table}) == 1
        assert re.fullmatch(r"\|(-+\|)+", table[1])
    assert r"a\|b" in text
    assert "the last 5 of 8:" in text


def test_no_row_and_no_table_is_empty() -> None:
    text = shown.render_markdown(full(), assess(full()), agent="ana")
    assert "None in both periods: matches; false positives; precision; escalated from warning to blocking; " in text
    assert not re.search(r"\| (0|none) +\| (0|none) +\|", text)
    html = shown.render_html(full(), assess(full()), agent="ana")
    assert "None in both periods: matches" in html
    assert not re.search(r">(0|none)</td><td[^>]*>(0|none)</td>", html)


def test_what_is_too_few_is_said_and_what_that_means() -> None:
    found = build_growth_report(PERIODS, brain(*went("success", 4)), heart())
    text = shown.render_markdown(found, assess(found), agent="ana")
    assert re.search(r"success rate +\| too few \| none +\| 4 reviewed \(0 before\)", text)
    assert "'Too few' means: fewer than 5 cases for a share or score, 20 reviews for a bias, 40 reviews for a " in text
    assert "Too few" not in shown.render_markdown(full(), assess(full()), agent="ana")


def test_the_page_needs_nothing_else() -> None:
    html = shown.render_html(full(), assess(full()), agent=NASTY)
    read = Page()
    read.feed(html)
    assert not read.tags & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert not read.attributes & {"src", "href", "srcset", "style", "onload", "onclick"}
    assert not re.search(r"https?://|url\(|@import", html)
    assert "<script" not in html
    assert "<code>newton decisions list --due</code>" in html
    assert html.count("<svg") == 1


def test_json_has_every_figure_with_what_it_is_computed_from() -> None:
    plain = json.loads(json.dumps(shown.report_to_json(full(), assess(full()))))
    assert set(plain["figures"]) == set(GrowthReport.__dataclass_fields__["metrics"].type.__dataclass_fields__)  # pyright: ignore[reportAttributeAccessIssue]  # a dataclass
    assert plain["figures"]["accuracy"] == {
        "kind": "share",
        "now": 0.0,
        "before": None,
        "n": 45,
        "n_before": 0,
        "fewest": 5,
        "enough": True,
    }
    assert (plain["bias"]["verdict"], len(plain["repeated"]), plain["without_vector"]) == ("overconfident", 8, 1)


@given(st.integers(0, 20), st.integers(0, 10))
def test_a_figure_tells_nothing_from_too_few(n: int, fewest: int) -> None:
    figure = PeriodMetric(kind="share", now=0.5, before=None, n=n, n_before=0, fewest=fewest)
    assert (figure.reliable_now is None) == (n < fewest)
