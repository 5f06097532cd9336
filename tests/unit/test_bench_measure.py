"""What the benchmarks measure, on cases that a person can count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.dataset import DatasetMessage, load_conversations
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
from bench.scoring import (
    GoldMessage,
    RecallSample,
    evidence_recall,
    is_in_context,
    percentile,
    recall_by_type,
    summarize_by_budget,
    word_overlap,
)
from newton.errors import InputError
from newton.providers import token_counter
from tests.support import count

TEN = "one two three four five six seven eight nine ten"


@dataclass(frozen=True)
class Item:
    refs: tuple[str, ...]
    detail: str | None
    text: str


def gold(ref: str = "m1", content: str = TEN, tokens: int = 10) -> GoldMessage:
    return GoldMessage(ref=ref, content=content, tokens=tokens)


def sample(type_: str, budget: int, share: float, *, tokens: int = 9, counted: int = 9) -> RecallSample:
    return RecallSample(type=type_, budget=budget, evidence=share, tokens=tokens, counted_tokens=counted, ms=1.0)


@pytest.mark.parametrize(
    ("line", "text", "share"),
    [
        ("a b c d", "[2023-05-08] Ana: a b c d", 1.0),
        ("a b c d", "d  c\tb\na", 1.0),
        ("a b c d", "a b c", 0.75),
        ("a a a b", "a b", 0.5),
        ("Word", "word", 0.0),
        ("end.", "end", 0.0),
        ("a", "", 0.0),
        ("", "", 1.0),
    ],
)
def test_words_count_as_often_as_they_stand_there(line: str, text: str, share: float) -> None:
    assert word_overlap(line, text) == share


@pytest.mark.parametrize(
    ("tokens", "shown", "there"),
    [
        (10, [Item(("m1",), "summary", TEN)], True),
        (10, [Item(("m1",), "micro", "one two three four five six seven eight …")], True),
        (10, [Item(("m1",), "summary", "one two three four five six seven …")], False),
        (10, [Item(("m2",), "summary", TEN)], False),
        (10, [Item(("m0", "m1"), "summary", "nothing"), Item(("m1",), "summary", TEN)], True),
        (110, [Item(("m1",), "summary", "one two …")], False),
        (111, [Item(("m1",), "summary", "one two …")], True),  # too long to fit
        (111, [Item(("m1",), "micro", "one two …")], False),
        (10, [], False),
    ],
)
def test_a_line_is_there_when_four_fifths_of_its_words_are(tokens: int, shown: list[Item], there: bool) -> None:
    assert is_in_context(gold(tokens=tokens), shown) is there
    assert evidence_recall([gold(tokens=tokens)], shown) == there
    assert evidence_recall([gold(tokens=tokens), gold("m3"), gold("m4"), None], shown) == there / 4


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.95, 8.4), (1.0, 9.0), (0.125, 1.5)]
)
def test_percentiles_lie_between_the_values(share: float, value: float) -> None:
    assert percentile([9, 3, 1, 6, 2], share) == pytest.approx(value)


def test_figures_are_those_of_their_formulas() -> None:
    samples = [
        sample("when", 10, 1.0),
        sample("when", 10, 0.5, counted=11),
        sample("who", 10, 0.0, tokens=10, counted=10),
        sample("who", 9, 1.0, counted=5),
    ]
    assert summarize_by_budget(samples) == {
        "9": {"evidence": 1.0, "over_budget": 0, "miscounted": 1, "tokens_mean": 5.0},
        "10": {"evidence": 0.5, "over_budget": 1, "miscounted": 1, "tokens_mean": 10.0},
    }
    assert recall_by_type(samples) == {"when": {"10": 0.75}, "who": {"9": 1.0, "10": 0.0}}
    # bm25 is the formula
    index = Bm25Index([["red", "boat", "boat"], ["red"], []])
    mean, idf = 4 / 3, math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean))
    scores = index.score(["boat", "boat", "unknown"])
    assert scores[0] == pytest.approx(expected) and list(scores[1:]) == [0, 0]
    assert rank_scores(index.score(["red"])) == [1, 0, 2]
    # the interval is that of the mean and the same in every run
    values = np.array([0.0] * 30 + [1.0] * 70)
    low, high = bootstrap_interval(values)
    expected = 1.96 * math.sqrt(0.7 * 0.3 / 100)
    assert (low, high) == bootstrap_interval(values)
    assert low == pytest.approx(0.7 - expected, abs=0.02) and high == pytest.approx(0.7 + expected, abs=0.02)


def test_a_folder_is_read_with_what_lies_beside_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"ref":"m1","content":"hello"}\n\nnonsense\n')
    (tmp_path / "a.queries.jsonl").write_text(
        '{"id":"q1","text":"who?","gold":["m1","m9"]}\n{"id":"q2","text":"why?","type":"why","gold":[]}\n'
    )
    (tmp_path / "alone.ndjson").write_text("{}")
    (found,) = load_conversations(tmp_path, count_tokens=count)
    (question,) = found.questions
    assert (found.name, found.line_count, question.type) == ("a", 2, "any")
    assert found.find_gold(question) == [GoldMessage(ref="m1", content="hello", tokens=2), None]


@pytest.mark.parametrize("questions", ["", '{"id":"q1","text":"who?","gold":[]}', '{"id":"q1"}', "nonsense"])
def test_a_folder_without_good_questions_is_refused(tmp_path: Path, questions: str) -> None:
    (tmp_path / "a.ndjson").write_text('{"ref":"m1","content":"hello"}')
    (tmp_path / "a.queries.jsonl").write_text(questions)
    with pytest.raises(InputError, match=r"gold|not a question"):
        load_conversations(tmp_path, count_tokens=count)


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


def test_a_context_has_the_best_lines_that_fit() -> None:
    long = DatasetMessage(ref="long", content="word " * 300, name="Ana")
    messages = [long, *(DatasetMessage(ref=f"m{n}", content=f"Line {n}.") for n in range(3))]
    whole = render_messages(messages, "whole", count_tokens=token_counter.count)
    short = render_messages(messages, "short", count_tokens=token_counter.count)
    for lines, refs in ((whole, ["m2", "m0", "m1"]), (short, ["m2", "long", "m0"])):
        chosen = fill_context(lines, [3, 0, 1, 2], 130)
        assert [line.refs[0] for line in chosen] == refs
        assert token_counter.count(join_lines(chosen)) == sum(line.tokens for line in chosen) <= 130


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
