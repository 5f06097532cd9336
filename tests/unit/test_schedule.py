"""Slots: every moment has one, and no time zone or leap of a clock makes it another."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.runtime.jobs.catalogue import JOBS
from newton.runtime.jobs.schedule import Schedule, backoff, daily, minutely, weekly

SCHEDULES = st.sampled_from([minutely(2), minutely(60), daily(3, 10), weekly("Monday", 6), weekly("Sunday", 5)])
MOMENTS = st.timedeltas(timedelta(days=-365), timedelta(days=84_000)).map(
    lambda age: datetime(1970, 1, 1, tzinfo=UTC) + age
)
ZONES = st.sampled_from(["Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@given(SCHEDULES, MOMENTS)
def test_a_moment_lies_between_its_slot_and_the_next(schedule: Schedule, now: datetime) -> None:
    # R7
    assert schedule.slot(now) <= now < schedule.next(now)
    assert schedule.slot(schedule.slot(now)) == schedule.slot(now)
    assert schedule.slot(schedule.next(now)) == schedule.next(now)


@given(SCHEDULES, MOMENTS, ZONES)
def test_slots_are_the_same_wherever_the_clock_hangs(schedule: Schedule, now: datetime, zone: str) -> None:
    # R7: where the hour of a clock comes twice or never, the slots do neither
    assert schedule.slot(now.astimezone(ZoneInfo(zone))) == schedule.slot(now)


@pytest.mark.parametrize("day", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
def test_the_days_on_which_clocks_change_have_as_many_slots_as_others(day: datetime) -> None:
    # R7
    oslo = [(day + timedelta(minutes=n)).astimezone(ZoneInfo("Europe/Oslo")) for n in range(24 * 60)]
    assert len({minutely(30).slot(now) for now in oslo}) == 48
    assert len({daily(1, 30).slot(now) for now in oslo}) == 2, "the one of the day before, and its own"


def test_days_of_the_week_are_those_of_the_calendar() -> None:
    wednesday = datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert weekly("Monday", 6).slot(wednesday) == datetime(2026, 3, 2, 6, tzinfo=UTC)
    assert weekly("Sunday", 5).slot(wednesday) == datetime(2026, 3, 1, 5, tzinfo=UTC)
    assert daily(13).slot(wednesday) == datetime(2026, 3, 3, 13, tzinfo=UTC)


@given(st.integers(1, 1_000), st.floats(0, 1))
def test_a_failed_run_waits_longer_each_time_and_never_long(attempts: int, luck: float) -> None:
    wait = backoff(attempts, luck)
    assert timedelta(seconds=2.5) <= wait <= timedelta(minutes=15)
    assert backoff(attempts + 1, luck) >= wait
    assert backoff(attempts, 0) <= wait <= backoff(attempts, 1)


def test_every_job_says_what_it_does_and_when() -> None:
    assert len(JOBS) >= 15
    for name, job in JOBS.items():
        assert job.name == name and job.does.endswith(".") and job.schedule.said, name
