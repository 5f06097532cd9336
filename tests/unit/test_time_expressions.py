"""Times that a text speaks of, as spans of the calendar."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.errors import InputError
from newton.runtime.cli.options import parse_time
from newton.text.time_expressions import MAX_RANGE, MAX_TIMES, find_mentioned_times, find_time_ranges
from tests.cases import load_cases

CASES = load_cases(__file__)

NOW = datetime(2024, 5, 15, 14, 30, tzinfo=UTC)  # a Wednesday


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "start", "end"), CASES["a_time_is_a_span_of_the_calendar"])
def test_a_time_is_a_span_of_the_calendar(text: str, start: str | None, end: str) -> None:
    # S001-12
    (span,) = find_time_ranges(text, now=NOW)
    assert (span.start, span.end) == (start and day(start), day(end))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("since Monday", day("2024-05-13")),
        ("Since March", day("2024-03-01")),
        ("after 2024-05-10", day("2024-05-11")),
        ("from tomorrow", day("2024-05-16")),
    ],
)
def test_what_began_has_no_end(text: str, start: datetime) -> None:
    (span,) = find_time_ranges(text, now=NOW)
    assert (span.start, span.end) == (start, None)


@pytest.mark.parametrize("text", CASES["what_is_no_time_is_none"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert find_time_ranges(text, now=NOW) == []


def test_times_come_in_order_once_and_without_overlap() -> None:
    found = find_time_ranges("Compare last week with March 2023 and the 3rd of April 2022.", now=NOW)
    assert [span.phrase for span in found] == ["last week", "march 2023", "the 3rd of april 2022"]
    # a memory s yesterday is the day before it
    zone = timezone(timedelta(hours=9))
    at = datetime(2021, 1, 1, 0, 5, tzinfo=zone)
    (span,) = find_time_ranges("yesterday", now=at)
    assert (span.start, span.end) == (datetime(2020, 12, 31, tzinfo=zone), datetime(2021, 1, 1, tzinfo=zone))
    assert len(find_time_ranges("yesterday " * 600, now=NOW)) == 1
    assert len(find_time_ranges(" ".join(f"in {year}" for year in range(1990, 2020)), now=NOW)) == MAX_TIMES
    # a memory speaks of times other than its own and of none too long
    told = "Today, this week, since March and in 2024 it was fine; I met him last May, before 2020, and in 2022."
    spoken = [(span.phrase, span.start, span.end) for span in find_mentioned_times(told, moment=NOW)]
    assert spoken == [
        ("last may", day("2023-05-01"), day("2023-06-01")),
        ("in 2022", day("2022-01-01"), day("2023-01-01")),
    ]


@pytest.mark.parametrize(("text", "starts"), CASES["a_day_without_a_year_is_the_last_and_the_next_one"])
def test_a_day_without_a_year_is_the_last_and_the_next_one(text: str, starts: list[str]) -> None:
    # S001-12
    assert [span.start for span in find_mentioned_times(text, moment=NOW)] == [day(start) for start in starts]


@pytest.mark.parametrize(
    ("text", "end"),
    [("What is due by Friday?", "2024-05-18"), ("What will we do on Friday?", "2024-05-18")],
)
def test_an_input_that_looks_ahead_asks_for_the_next_one(text: str, end: str) -> None:
    assert [span.end for span in find_time_ranges(text, now=NOW)] == [day(end)]


def test_pasted_logs_ask_for_no_time() -> None:
    # S001-12
    log = "\n".join(f"2024-05-10 09:{minute:02}:01 ERROR no answer since 3 March" for minute in range(60))
    assert (
        find_time_ranges(f"What broke yesterday?\n{log}", now=NOW)
        == find_time_ranges("What broke yesterday?", now=NOW)
        != []
    )
    assert (
        find_time_ranges("[May 10 09:00:01 host] sshd", now=NOW)
        == find_time_ranges("see 2024-05-10T09:00:01Z", now=NOW)
        == []
    )
    assert len(find_time_ranges("What happened on 2024-05-10 09:00?", now=NOW)) == 1


STRAY = "since before last next in on the 31 29 february may monday 2024-02-30 week 999 years ago past 1900 of"
WORDS = st.sampled_from(STRAY.split())


@given(st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=60), st.datetimes(timezones=st.just(UTC)))
def test_any_words_at_any_moment_give_spans_that_end_after_they_begin(text: str, now: datetime) -> None:
    for span in find_time_ranges(text, now=now):
        assert span.start is None or span.end is None or span.start < span.end
    for span in find_mentioned_times(text, moment=now):
        assert span.start is not None and span.end is not None
        assert timedelta(0) < span.end - span.start <= MAX_RANGE and not span.contains(now)


@pytest.mark.parametrize(("said", "start", "end"), CASES["a_time_is_a_day_a_moment_or_words"])
def test_a_time_is_a_day_a_moment_or_words(said: str, start: str, end: str) -> None:
    def at(text: str) -> datetime:
        told = datetime.fromisoformat(text)
        return told if told.tzinfo else told.replace(tzinfo=UTC)

    assert (parse_time(said, now=NOW), parse_time(said, now=NOW, use_end=True)) == (at(start), at(end))


@pytest.mark.parametrize(
    "said", ["garbage", "", "last week and yesterday", "2026-01-31T09:00", "31 February", "before May"]
)
def test_what_is_no_time_is_refused_with_a_remedy(said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_time(said, now=NOW)
    assert "Write" in refused.value.hint
