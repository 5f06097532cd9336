"""The figures of the leaderboard, on cases that a person can count."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from bench.dataset import DatasetMessage
from bench.leaderboard.filled_context import fill_context, join_lines, render_messages
from bench.leaderboard.page import render_markdown
from bench.leaderboard.public_sets import PUBLIC_DATASETS
from bench.leaderboard.rankers import Bm25Index, rank_scores
from bench.leaderboard.receipts import ContextReceipt
from bench.leaderboard.report import LeaderboardReport
from bench.leaderboard.summary import (
    MeasuredRows,
    SplitResults,
    bootstrap_interval,
    list_better,
    summarize_split,
)
from newton.providers import token_counter

QUESTIONS = 40


def receipts(variant: str, shares: Sequence[bool], *, ms: float = 4.0) -> list[ContextReceipt]:
    return [
        ContextReceipt(
            question=f"q{number}",
            type="point" if number % 2 else "list",
            variant=variant,
            budget=500,
            found=("m1",) if is_found else (),
            missed=() if is_found else ("m1",),
            verbatim=(),
            tokens=400 + number,
            items=3,
            ms=ms,
            embed_ms=2.0,
            context_sha256="0" * 64,
        )
        for number, is_found in enumerate(shares)
    ]


def results(newton: Sequence[bool], other: Sequence[bool]) -> SplitResults:
    rows = [
        MeasuredRows("bm25", "BM25", receipts("full", other, ms=2.0), []),
        MeasuredRows("newton", "Newton", receipts("full", newton), []),
    ]
    return summarize_split(PUBLIC_DATASETS[0], "held out", [], rows)


def test_bm25_is_the_formula() -> None:
    index = Bm25Index([["red", "boat", "boat"], ["red"], []])
    mean, idf = 4 / 3, math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean))
    scores = index.score(["boat", "boat", "unknown"])
    assert scores[0] == pytest.approx(expected) and list(scores[1:]) == [0, 0]
    assert rank_scores(index.score(["red"])) == [1, 0, 2]


def test_a_context_has_the_best_lines_that_fit() -> None:
    long = DatasetMessage(ref="long", content="word " * 300, name="Ana")
    messages = [long, *(DatasetMessage(ref=f"m{n}", content=f"Line {n}.") for n in range(3))]
    whole = render_messages(messages, "whole", count_tokens=token_counter.count)
    short = render_messages(messages, "short", count_tokens=token_counter.count)
    for lines, refs in ((whole, ["m2", "m0", "m1"]), (short, ["m2", "long", "m0"])):
        chosen = fill_context(lines, [3, 0, 1, 2], 130)
        assert [line.refs[0] for line in chosen] == refs
        assert token_counter.count(join_lines(chosen)) == sum(line.tokens for line in chosen) <= 130


def test_the_interval_is_that_of_the_mean_and_the_same_in_every_run() -> None:
    values = np.array([0.0] * 30 + [1.0] * 70)
    low, high = bootstrap_interval(values)
    expected = 1.96 * math.sqrt(0.7 * 0.3 / 100)
    assert (low, high) == bootstrap_interval(values)
    assert low == pytest.approx(0.7 - expected, abs=0.02) and high == pytest.approx(0.7 + expected, abs=0.02)


def test_where_another_system_is_better_the_page_says_so() -> None:
    # S020: honest figures
    weaker, stronger = [False] * QUESTIONS, [number % 4 > 0 for number in range(QUESTIONS)]
    shown = results(weaker, stronger)
    assert [row.title for row in shown.rows] == ["Newton", "BM25"]
    assert shown.rows[1].latency.to_newton == 0.5 and shown.types == {"list": 20, "point": 20}
    better = list_better(shown)
    assert [(one.title, one.where, one.budget) for one in better] == [
        ("BM25", "all questions", 500),
        ("BM25", "list", 500),
        ("BM25", "point", 500),
    ]
    report = LeaderboardReport(about={}, results=[shown], missing=[], not_measured={"mem0": "pip install mem0ai"})
    text = render_markdown(report)
    assert "better than Newton with the same selection: 3, of which 3 have an interval above zero" in text
    assert "0.750 [" in text and "★" in text and "mem0 was not measured" in text
    assert not list_better(results(stronger, weaker)) and not list_better(results(weaker, weaker))
