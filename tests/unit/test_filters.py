"""What of the filters of a context left nothing to choose from."""

import pytest

from newton.cognition.request import ContextFilters
from newton.memory.memory import Kind
from tests.support import NOON

SINCE = ["2026-11-21T12:00:00+00:00"]


@pytest.mark.parametrize(
    ("filters", "passed", "left"),
    [
        (ContextFilters(), set[str](), {}),
        (ContextFilters(kinds=frozenset[Kind]({"episode"})), set[str](), {"kinds": ["episode"]}),
        (ContextFilters(kinds=frozenset[Kind]({"episode", "fact"})), {"fact"}, {"kinds": ["episode"]}),
        (ContextFilters(kinds=frozenset[Kind]({"fact"})), {"fact"}, {}),
        (ContextFilters(event_types=frozenset({"error"})), {"fact"}, {"event_types": ["error"]}),
        (ContextFilters(event_types=frozenset({"error"})), {"fact", "event"}, {}),
        (ContextFilters(entity_types=frozenset({"person"})), {"event"}, {"entity_types": ["person"]}),
        (ContextFilters(since=NOON), {"procedure"}, {"since": SINCE}),
        (ContextFilters(since=NOON), {"procedure", "exchange"}, {}),
        (ContextFilters(until=NOON), {"procedure"}, {"until": SINCE}),
        (ContextFilters(until=NOON), {"exchange"}, {}),
        (
            ContextFilters(since=NOON, entity_types=frozenset({"x"})),
            set[str](),
            {"since": SINCE, "entity_types": ["x"]},
        ),
    ],
)
def test_filters_that_left_nothing_are_named(
    filters: ContextFilters, passed: set[str], left: dict[str, list[str]]
) -> None:
    # S001-31
    assert filters.find_unmatched(passed) == left
