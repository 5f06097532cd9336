"""Times that a text speaks of, as spans of the calendar."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.memory.times.time_expressions import MAX_RANGE, MAX_TIMES, find_mentioned_times, find_time_ranges

NOW = datetime(2024, 5, 15, 14, 30, tzinfo=UTC)  # a Wednesday


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did we do yesterday?", "2024-05-14", "2024-05-15"),
        ("the day before yesterday", "2024-05-13", "2024-05-14"),
        ("Is it due tomorrow?", "2024-05-16", "2024-05-17"),
        ("last week", "2024-05-06", "2024-05-13"),
        ("this week's work", "2024-05-13", "2024-05-20"),
        ("next weekend", "2024-05-25", "2024-05-27"),
        ("last month", "2024-04-01", "2024-05-01"),
        ("last quarter", "2024-01-01", "2024-04-01"),
        ("two days ago", "2024-05-13", "2024-05-14"),
        ("a week ago", "2024-05-06", "2024-05-13"),
        ("5 months ago", "2023-12-01", "2024-01-01"),
        ("in the last three days", "2024-05-12", "2024-05-16"),
        ("over the past 2 months", "2024-03-15", "2024-05-16"),
        ("on Monday", "2024-05-13", "2024-05-14"),
        ("Wednesday", "2024-05-15", "2024-05-16"),
        ("last Wednesday", "2024-05-08", "2024-05-09"),
        ("next Wednesday", "2024-05-22", "2024-05-23"),
        ("Friday", "2024-05-10", "2024-05-11"),
        ("In March we met", "2024-03-01", "2024-04-01"),
        ("in December", "2023-12-01", "2024-01-01"),
        ("last May", "2023-05-01", "2023-06-01"),
        ("march 2022", "2022-03-01", "2022-04-01"),
        ("the 3rd of March", "2024-03-03", "2024-03-04"),
        ("on December 24th", "2023-12-24", "2023-12-25"),
        ("July 4, 2021", "2021-07-04", "2021-07-05"),
        ("29 February", "2024-02-29", "2024-03-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("on 2024-02-03", "2024-02-03", "2024-02-04"),
        ("2023-12", "2023-12-01", "2024-01-01"),
        ("before March", None, "2024-03-01"),
        ("until Monday", None, "2024-05-14"),
        ("on sat", "2024-05-11", "2024-05-12"),
        ("the photo from last week", "2024-05-06", "2024-05-13"),
        ("the week before August 3, 2023", "2023-07-27", "2023-08-03"),
        ("the day after 3 August 2023", "2023-08-04", "2023-08-05"),
        ("last weekend before April 10, 2023", "2023-04-08", "2023-04-10"),
        ("two weeks before August 11, 2023", "2023-07-24", "2023-07-31"),
    ],
)
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


@pytest.mark.parametrize(
    "text",
    [
        "You may march on",
        "It costs 2024 euros",
        "31 February",
        "2024-13-01",
        "monument",
        "a sunny second",
        "She sat in the sun",
        "a wed couple",
    ],
)
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


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("The dentist sees me on 22 May", ["2023-05-22", "2024-05-22"]),
        ("Lunch on Friday", ["2024-05-10", "2024-05-17"]),
        ("The fair is in June", ["2023-06-01", "2024-06-01"]),
        ("Send it by Friday", ["2024-05-17"]),
        ("The report is due on 22 May.", ["2024-05-22"]),
        ("We met on Friday.", ["2024-05-10"]),
        ("We met. She comes on Friday", ["2024-05-10", "2024-05-17"]),
        ("I booked the dentist for 22 May", ["2023-05-22", "2024-05-22"]),
        ("It snowed on 29 February", ["2024-02-29"]),
        ("The leap day party: 29 February", ["2024-02-29", "2028-02-29"]),
        ("Dinner on Wednesday", []),  # today
    ],
)
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
