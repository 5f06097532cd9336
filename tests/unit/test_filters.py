"""What of the filters of a context left nothing to choose from."""

import pytest

from newton.cognition.filters import Filters
from newton.memory.memory import Kind
from tests.support import NOON

SINCE = ["2026-11-21T12:00:00+00:00"]


@pytest.mark.parametrize(
    ("filters", "passed", "left"),
    [
        (Filters(), set[str](), {}),
        (Filters(kinds=frozenset[Kind]({"episode"})), set[str](), {"kinds": ["episode"]}),
        (Filters(kinds=frozenset[Kind]({"episode", "fact"})), {"fact"}, {"kinds": ["episode"]}),
        (Filters(kinds=frozenset[Kind]({"fact"})), {"fact"}, {}),
        (Filters(event_types=frozenset({"error"})), {"fact"}, {"event_types": ["error"]}),
        (Filters(event_types=frozenset({"error"})), {"fact", "event"}, {}),
        (Filters(entity_types=frozenset({"person"})), {"event"}, {"entity_types": ["person"]}),
        (Filters(since=NOON), {"procedure"}, {"since": SINCE}),
        (Filters(since=NOON), {"procedure", "exchange"}, {}),
        (Filters(until=NOON), {"procedure"}, {"until": SINCE}),
        (Filters(until=NOON), {"exchange"}, {}),
        (Filters(since=NOON, entity_types=frozenset({"x"})), set[str](), {"since": SINCE, "entity_types": ["x"]}),
    ],
)
def test_filters_that_left_nothing_are_named(filters: Filters, passed: set[str], left: dict[str, list[str]]) -> None:
    # S001-31
    assert filters.left_nothing(passed) == left
