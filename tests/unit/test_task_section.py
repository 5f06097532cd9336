"""The stack in a context: the root always, the way down, what came of those beside it; never more than the shares."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.budget import TASK_LAYER_PERCENT, allocate_budget
from newton.cognition.assembly.render import count_header_tokens, render
from newton.cognition.assembly.sections import NO_TASKS, TaskSection, build_task_section
from newton.dialogue.task_tree import EMPTY_STACK, Task, TaskStack, TaskStatus
from newton.providers import token_counter
from tests.support import NOON

HEADERS = count_header_tokens(token_counter.count)


def task(number: int, goal: str, *, parent: int | None = None, status: TaskStatus = "active", words: str = "") -> Task:
    return Task(
        task_id=UUID(int=number),
        number=number,
        parent_id=UUID(int=parent) if parent else None,
        instead_of=None,
        depth=0 if parent is None else 1,
        goal=goal,
        status=status,
        words=words or None,
        first=0,
        last=0 if status in ("complete", "failed") else None,
        pushed_at=NOON,
        changed_at=NOON + timedelta(minutes=number),
    )


def told(stack: TaskStack, total: int = 8_000) -> tuple[TaskSection, str]:
    made = build_task_section(
        stack, allocate_budget(total, has_tasks=True).layers, HEADERS, count_tokens=token_counter.count
    )
    return made, render(made.to_layers(), header_tokens=HEADERS).text


def test_a_context_says_the_goal_the_way_and_what_is_done_beside_it() -> None:
    # S001-37
    dead = task(4, "Cache it", parent=2, status="failed", words="cold each\nmorning")
    now = replace(task(5, "Add an index", parent=2), instead_of=dead.task_id)
    path = (task(1, "Ship it"), task(2, "Make it fast", parent=1), now)
    measured = task(3, "Measure it", parent=2, status="complete", words="it takes 900 ms")
    waiting = task(6, "Ask Mira", parent=5, status="blocked", words="she is away")
    _, text = told(TaskStack(path=path, related=(measured, dead, waiting)))
    assert text.splitlines() == [
        "## Tasks",
        "- Goal: Ship it",
        "- Within it: Make it fast",
        "- Now: Add an index (instead of: Cache it, a dead end: cold each morning)",
        "- Done: Measure it -> it takes 900 ms",
        "- Blocked (task 6): Ask Mira -> she is away",
    ]


def test_a_root_alone_is_the_goal_and_the_task() -> None:
    assert told(TaskStack(path=(task(1, "Ship it"),)))[1] == "## Tasks\n- Goal, and now: Ship it\n"
    assert told(EMPTY_STACK) == (NO_TASKS, "")


def test_where_there_is_no_room_the_latest_results_stay_and_the_rest_is_counted() -> None:
    # S001-37
    many = tuple(task(n, f"Step {n}", parent=1, status="complete", words="done and well " * 9) for n in range(2, 60))
    made, text = told(TaskStack(path=(task(1, "Ship it"),), related=many))
    assert 0 < made.omitted_count == 58 - len(made.siblings)
    assert [f"Step {n} " in text for n in (2, 59)] == [False, True]
    nothing, _ = told(TaskStack(path=(task(1, "Ship it"),), related=many), total=60)
    assert (nothing.root, nothing.omitted_count) == ((), 59)


TASKS = st.lists(
    st.tuples(st.text(min_size=1, max_size=600), st.text(min_size=1, max_size=900)), min_size=1, max_size=9
)


@given(TASKS, TASKS, st.integers(1, 20_000))
def test_each_part_stays_within_its_share_of_the_flexible_part(
    way: list[tuple[str, str]], beside: list[tuple[str, str]], total: int
) -> None:
    # S001-37
    path = tuple(task(n, goal, parent=n - 1 or None) for n, (goal, _) in enumerate(way, 1))
    done = tuple(
        task(n, goal, parent=len(way), status="complete", words=words) for n, (goal, words) in enumerate(beside, 100)
    )
    made, text = told(TaskStack(path=path, related=done), total)
    layers = allocate_budget(total, has_tasks=True).layers
    for part in TASK_LAYER_PERCENT:
        shown = render({part: made.to_layers()[part]}, header_tokens=HEADERS)
        assert shown.tokens == token_counter.count(shown.text) <= layers[part]
    assert render(made.to_layers(), header_tokens=HEADERS).tokens == token_counter.count(text)
    assert text == told(TaskStack(path=path, related=done), total)[1]
    assert len(made.path) + len(made.siblings) + made.omitted_count + len(made.root) == len(path) + len(done)
    assert made.root or not text
