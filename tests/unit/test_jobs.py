"""What jobs say of their work: the reason with the figures, and nothing for nothing."""

from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.maintenance.extracted_facts import ExtractionResult
from newton.agent.maintenance.service import LearningReport
from newton.brain.queries import DecisionSummary
from newton.memory.store import PlannedTransition
from newton.memory.vectors import DrainResult, OutboxBacklog
from newton.runtime.jobs.maintenance import (
    MIN_DEAD_ROWS,
    TableStats,
    describe_retention,
    find_snapshot_reason,
    to_embed_outcome,
    to_learning_outcome,
    to_lifecycle_outcome,
    to_reminder_outcome,
    to_vacuum_outcome,
)
from newton.runtime.jobs.queue import JobOutcome
from tests.support import NOON

NONE_LEFT = OutboxBacklog(0, 0, None)


def test_what_waits_for_a_model_that_is_away_says_so_and_is_no_failure() -> None:
    # R9
    away = to_embed_outcome(DrainResult(0, 0, stopped_by="connection refused"), OutboxBacklog(3, 0, None))
    assert away == JobOutcome(reason="3 memories are not embedded yet: connection refused")
    part = to_embed_outcome(DrainResult(5, 0, stopped_by="connection refused"), OutboxBacklog(1, 0, None))
    assert part.reason == "1 memory is not embedded yet: connection refused"
    assert part.result and part.result["embedded"] == 5
    assert to_embed_outcome(DrainResult(2, 1), NONE_LEFT).reason == "3 memories to embed"
    assert to_embed_outcome(DrainResult(0, 0), NONE_LEFT).result is None
    assert to_embed_outcome(DrainResult(0, 0, stopped_by="no model"), NONE_LEFT).result is None, "nobody waits for it"


@given(st.lists(st.sampled_from(["expired", "merged", "archived"])))
def test_steps_are_counted_each_once(events: list[str]) -> None:
    outcome = to_lifecycle_outcome(
        [PlannedTransition(uuid4(), event, "NEW", "SUPERSEDED", "a rule") for event in events]
    )
    assert sum(int(str(number)) for number in (outcome.result or {}).values()) == len(events)
    assert (outcome.result is None) == (not events)
    assert all(event in outcome.reason for event in events)


def decision(days: int) -> DecisionSummary:
    return DecisionSummary(
        decision_id=uuid4(),
        state="RECORDED",
        description="marry Ana",
        decided_at=NOON,
        confidence=0.5,
        category="life",
        stakes="high",
        frame=None,
        look_again_at=NOON - timedelta(days=days),
        outcome=None,
        reviewed_at=None,
        review_method=None,
        is_overdue=True,
    )


def test_reminders_name_decisions_by_their_ids_and_keep_no_word_of_them() -> None:
    # S002-20
    assert to_reminder_outcome([]).result is None
    due = [decision(1), decision(30)]
    said = to_reminder_outcome(due)
    assert said.result == {"decisions": [str(one.decision_id) for one in due]}
    assert said.reason == "2 decisions past the review date; the oldest date is 2026-10-22"
    assert "Ana" not in repr(said)


@pytest.mark.parametrize(("judged", "noted", "due"), [(0, 0, False), (3, 3, False), (4, 3, True), (2, 3, True)])
def test_a_snapshot_is_due_when_outcomes_came_or_went(judged: int, noted: int, due: bool) -> None:
    # S002-21
    assert (find_snapshot_reason(judged, noted) is not None) == due


def test_what_jobs_leave_alone_and_say() -> None:
    tidy = [TableStats("a", 100_000, MIN_DEAD_ROWS, None), TableStats("b", 100, MIN_DEAD_ROWS - 1, NOON)]
    assert to_vacuum_outcome(tidy).result is None
    said = to_vacuum_outcome([*tidy, TableStats("memory.postings", MIN_DEAD_ROWS, 3 * MIN_DEAD_ROWS, None)])
    assert (
        said.result == {"dead_percent": {"memory.postings": 75}} and "vacuum (analyze) memory.postings" in said.reason
    )
    assert describe_retention(0).startswith("retention: contexts no limit, ")
    assert describe_retention(90) == "retention: contexts 90 days, working memory 30 days, runs 30 days"
    assert to_learning_outcome(LearningReport(1, ExtractionResult(1, 2))).reason == "1 conversation to process"
