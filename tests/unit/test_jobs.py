"""What jobs say of their work: the reason with the figures, and nothing for nothing."""

from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.extraction import Harvest
from newton.brain.reading import Listed
from newton.memory.outbox import Backlog, Drained
from newton.memory.transitions import Step
from newton.runtime.jobs.decisions import reminded, unnoted
from newton.runtime.jobs.memories import embedded, harvested, stepped
from newton.runtime.jobs.queue import Outcome
from newton.runtime.jobs.storage import DEAD_ROWS, Table, kept_for, untidy
from tests.support import NOON

NONE_LEFT = Backlog(0, 0, None)


def test_what_waits_for_a_model_that_is_away_says_so_and_is_no_failure() -> None:
    # R9
    away = embedded(Drained(0, 0, down="connection refused"), Backlog(3, 0, None))
    assert away == Outcome(because="3 memories wait for a vector: connection refused")
    part = embedded(Drained(5, 0, down="connection refused"), Backlog(1, 0, None))
    assert part.because == "1 memory waits for a vector: connection refused"
    assert part.did and part.did["embedded"] == 5
    assert embedded(Drained(2, 1), NONE_LEFT).because == "3 memories waited for a vector"
    assert embedded(Drained(0, 0), NONE_LEFT).did is None
    assert embedded(Drained(0, 0, down="no model"), NONE_LEFT).did is None, "nobody waits for it"


@given(st.lists(st.sampled_from(["expired", "merged", "archived"])))
def test_steps_are_counted_each_once(events: list[str]) -> None:
    outcome = stepped([Step(uuid4(), event, "NEW", "SUPERSEDED", "a rule") for event in events])
    assert sum(int(str(number)) for number in (outcome.did or {}).values()) == len(events)
    assert (outcome.did is None) == (not events)
    assert all(event in outcome.because for event in events)


def decision(days: int) -> Listed:
    return Listed(
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
        how=None,
        overdue=True,
    )


def test_reminders_name_decisions_by_their_ids_and_keep_no_word_of_them() -> None:
    # S002-20
    assert reminded([]).did is None
    due = [decision(1), decision(30)]
    said = reminded(due)
    assert said.did == {"decisions": [str(one.decision_id) for one in due]}
    assert said.because == "2 decisions past the date to look again, the first since 2026-10-22"
    assert "Ana" not in repr(said)


@pytest.mark.parametrize(("judged", "noted", "due"), [(0, 0, False), (3, 3, False), (4, 3, True), (2, 3, True)])
def test_a_snapshot_is_due_when_outcomes_came_or_went(judged: int, noted: int, due: bool) -> None:
    # S002-21
    assert (unnoted(judged, noted) is not None) == due


def test_tables_that_autovacuum_keeps_up_with_are_left_alone() -> None:
    tidy = [Table("a", 100_000, DEAD_ROWS, None), Table("b", 100, DEAD_ROWS - 1, NOON)]
    assert untidy(tidy).did is None
    said = untidy([*tidy, Table("memory.postings", DEAD_ROWS, 3 * DEAD_ROWS, None)])
    assert said.did == {"dead_percent": {"memory.postings": 75}} and "vacuum (analyze) memory.postings" in said.because


def test_what_is_kept_and_what_was_read_is_said() -> None:
    assert kept_for(0, 30).startswith("contexts are kept for ever, ")
    assert kept_for(90, 30) == "contexts are kept 90 days, what sessions have at hand 30, ended runs 30"
    assert harvested(Harvest(1, 2, 0, 0)).because == "1 conversation no model had read"
