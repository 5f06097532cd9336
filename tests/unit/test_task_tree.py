"""Trees of tasks, however deep."""

from uuid import UUID

from newton.dialogue.task_tree import Task, TaskTree
from tests.support import NOON


def task(number: int, parent: int | None) -> Task:
    return Task(
        task_id=UUID(int=number),
        number=number,
        parent_id=None if parent is None else UUID(int=parent),
        instead_of=None,
        depth=number,
        goal=f"Goal {number}",
        status="active",
        words=None,
        first=0,
        last=None,
        pushed_at=NOON,
        changed_at=NOON,
    )


def test_what_is_in_a_task_comes_each_before_its_own_however_deep() -> None:
    deep = TaskTree([task(1, None), *(task(n, n - 1) for n in range(2, 3_000))])
    assert [one.number for one in deep.descendants(UUID(int=1))] == list(range(2, 3_000))
    wide = TaskTree([task(1, None), task(2, 1), task(3, 1), task(4, 2), task(5, 2), task(6, 3)])
    assert [one.number for one in wide.descendants(UUID(int=1))] == [2, 4, 5, 3, 6]
