"""The check of the probability of an answer on questions that were not fitted, and the card that states it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from newton.cognition.relevance_model import RelevanceModel
from newton.cognition.scoring.relevance import estimate_answers
from tests.fitting.answers import AnswerCase, Floats
from tests.fitting.relevance_data import LONG_TEXTS, STORES, Folder

metrics = import_module("sklearn.metrics")  # scikit-learn has no type stubs

LIKELY = 0.02  # most candidates have nearly no probability; the error of the others is stated too
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCheck:
    """How well the probabilities fit a group of questions: of their memories and, if `answered`, of an answer at all.

    `error` is the expected calibration error (ECE) over all candidates, `likely_error` over those from LIKELY on.
    """

    group: str
    questions: int
    candidates: int
    error: float
    likely_error: float
    precision: float
    loss: float
    known: float


def check_model(model: RelevanceModel, cases: Sequence[AnswerCase]) -> list[GroupCheck]:
    """Return the figures of each group of held-out questions, in the order in which the groups come."""
    groups = dict.fromkeys(case.group for case in cases)
    return [_check_group(model, group, [case for case in cases if case.group == group]) for group in groups]


def _check_group(model: RelevanceModel, group: str, cases: Sequence[AnswerCase]) -> GroupCheck:
    probabilities, right, questions = list[float](), list[bool](), list[float]()
    for case in cases:
        estimate = estimate_answers(model, case.result)
        questions.append(estimate.question or 0.0)
        probabilities += [estimate.find(found) for found in case.result.memories]
        right += [found.memory_id in case.right for found in case.result.memories]
    stated, true = np.array(probabilities), np.array(right)
    likely = stated >= LIKELY
    return GroupCheck(
        group=group,
        questions=len(cases),
        candidates=len(stated),
        error=_compute_error(stated, true),
        likely_error=_compute_error(stated[likely], true[likely]),
        precision=float(metrics.average_precision_score(true, stated)) if true.any() else float("nan"),
        loss=float(metrics.log_loss(true, np.clip(stated, 1e-6, 1 - 1e-6), labels=[False, True])),
        known=float(np.mean(questions)),
    )


def _compute_error(stated: Floats, true: NDArray[np.bool_]) -> float:
    """Return the expected calibration error in bins of equal width, 0 without candidates."""
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = [abs((stated[bins == n] - true[bins == n]).sum()) for n in range(BINS)]
    return float(sum(gaps) / len(stated)) if len(stated) else 0.0


def render_card(checks: Sequence[GroupCheck], folders: Sequence[Folder], *, counts: tuple[int, int] | None) -> str:
    """Return the card as Markdown. `counts` are the fitted questions for topics and answers, None if there are none."""
    split = ";\n  ".join(
        f"{one.name}: {_list_names(one.fitted)} fitted, {_list_names(one.held_out)} held out" for one in folders
    )
    fitted = f"{counts[0]:,} questions for topics, {counts[1]:,} for answers" if counts else "not fitted in this run"
    rows = [
        f"| {one.group} | {one.questions} | {one.candidates:,} | {one.error:.3f} | {one.likely_error:.3f} |"
        f" {_format_precision(one.precision)} | {one.loss:.4f} | {one.known:.2f} |"
        for one in checks
    ]
    return "\n".join([*_render_head(split, fitted), *rows, ""])


def _render_head(split: str, fitted: str) -> list[str]:
    sizes = sorted({names for names, _ in STORES})
    return [
        "# Card of the relevance model",
        "",
        f"`relevance.json`, checked on {datetime.now(UTC):%Y-%m-%d}. `scripts/fit-relevance` writes both files.",
        "",
        f"- **Fitted to**: {fitted}. Conversations of LoCoMo (CC BY-NC 4.0) and BEAM (CC BY-SA 4.0),",
        "  `tests/data/small_stores.yaml` (24 agents with twelve facts), four of `question_stores/answers.yaml`,",
        "  a generated life with 50 facts on ten topics,",
        f"  {len(STORES)} generated stores of beliefs ({sizes[0]} to {sizes[-1]} people and projects each),",
        f"  {LONG_TEXTS} generated long texts, and every second question of `tests/data/unknown_questions.yaml`.",
        "  The file has coefficients only, no text.",
        f"- **Split**: {split}.",
        "  The agents of `small_stores_heldout.yaml`, `question_stores/heldout.yaml`, `heldout_large.yaml` there and",
        "  `labelled_beliefs.yaml` are held out too.",
        "- **Use**: the probability that a memory answers a question, with the embedding model that the file names.",
        "- **Not for**: another embedding model, memories of fewer than ten texts, or other inputs than questions.",
        "",
        "Held-out questions. ECE is the expected calibration error in ten bins, over all candidates and over those",
        f"with a probability of {LIKELY:g} or more; AP the average precision over all candidates of the group; `known`",
        "the mean probability that memory answers at all, which should be low in groups without an answer (foreign,",
        "shared words).",
        "",
        "| group | questions | candidates | ECE | ECE of likely ones | AP | log loss | known |",
        "|---|---|---|---|---|---|---|---|",
    ]


def _format_precision(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _list_names(conversations: Sequence[object]) -> str:
    names = [str(getattr(one, "name", "")) for one in conversations]
    return f"{names[0]} to {names[-1]}" if len(names) > 1 else "".join(names)
