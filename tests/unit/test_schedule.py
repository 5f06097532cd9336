"""Slots: every moment has one, and no time zone or leap of a clock makes it another."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.runtime.jobs.recurrence import JobSchedule, backoff_delay, daily, every_minutes, weekly
from newton.runtime.jobs.schedule import JOBS

SCHEDULES = st.sampled_from(
    [every_minutes(2), every_minutes(60), daily(3, 10), weekly("Monday", 6), weekly("Sunday", 5)]
)
MOMENTS = st.timedeltas(timedelta(days=-365), timedelta(days=84_000)).map(
    lambda age: datetime(1970, 1, 1, tzinfo=UTC) + age
)
ZONES = st.sampled_from(["Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@given(SCHEDULES, MOMENTS)
def test_a_moment_lies_between_its_slot_and_the_next(schedule: JobSchedule, now: datetime) -> None:
    # R7
    assert schedule.last_slot(now) <= now < schedule.next_slot(now)
    assert schedule.last_slot(schedule.last_slot(now)) == schedule.last_slot(now)
    assert schedule.last_slot(schedule.next_slot(now)) == schedule.next_slot(now)


@given(SCHEDULES, MOMENTS, ZONES)
def test_slots_are_the_same_wherever_the_clock_hangs(schedule: JobSchedule, now: datetime, zone: str) -> None:
    # R7: where the hour of a clock comes twice or never, the slots do neither
    assert schedule.last_slot(now.astimezone(ZoneInfo(zone))) == schedule.last_slot(now)


@pytest.mark.parametrize("day", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
def test_the_days_on_which_clocks_change_have_as_many_slots_as_others(day: datetime) -> None:
    # R7
    oslo = [(day + timedelta(minutes=n)).astimezone(ZoneInfo("Europe/Oslo")) for n in range(24 * 60)]
    assert len({every_minutes(30).last_slot(now) for now in oslo}) == 48
    assert len({daily(1, 30).last_slot(now) for now in oslo}) == 2, "the one of the day before, and its own"


def test_days_of_the_week_are_those_of_the_calendar() -> None:
    wednesday = datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert weekly("Monday", 6).last_slot(wednesday) == datetime(2026, 3, 2, 6, tzinfo=UTC)
    assert weekly("Sunday", 5).last_slot(wednesday) == datetime(2026, 3, 1, 5, tzinfo=UTC)
    assert daily(13).last_slot(wednesday) == datetime(2026, 3, 3, 13, tzinfo=UTC)


@given(st.integers(1, 1_000), st.floats(0, 1))
def test_a_failed_run_waits_longer_each_time_and_never_long(attempts: int, luck: float) -> None:
    wait = backoff_delay(attempts, luck)
    assert timedelta(seconds=2.5) <= wait <= timedelta(minutes=15)
    assert backoff_delay(attempts + 1, luck) >= wait
    assert backoff_delay(attempts, 0) <= wait <= backoff_delay(attempts, 1)


def test_every_job_says_what_it_does_and_when() -> None:
    assert len(JOBS) >= 15
    for name, job in JOBS.items():
        assert job.name == name and job.description.endswith(".") and job.schedule.description, name
