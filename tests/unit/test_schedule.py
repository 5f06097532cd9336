"""Slots: every moment has one, and no time zone or leap of a clock makes it another."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger
from hypothesis import given, settings
from hypothesis import strategies as st

from newton.errors import ConfigError
from newton.runtime.jobs.job_settings import build_schedules
from newton.runtime.jobs.schedule import JOBS
from newton.runtime.jobs.triggers import (
    FIRST_SLOT,
    CronSchedule,
    JobSchedule,
    backoff_delay,
    daily,
    every_minutes,
    weekly,
)
from newton.runtime.settings_mapping import check_settings
from newton.settings import load

SCHEDULES = st.sampled_from(
    [every_minutes(2), every_minutes(60), daily(3, 10), weekly("Monday", 6), weekly("Sunday", 5)]
)
MOMENTS = st.timedeltas(timedelta(), timedelta(days=60_000)).map(lambda age: FIRST_SLOT + timedelta(days=7) + age)
ZONES = st.sampled_from(["Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])


@settings(max_examples=40)
@given(SCHEDULES, MOMENTS)
def test_a_moment_lies_between_its_slot_and_the_next(schedule: JobSchedule, now: datetime) -> None:
    # R7
    last, following = schedule.last_slot(now), schedule.next_slot(now)
    assert last is not None and following is not None
    assert last <= now < following
    assert schedule.last_slot(last) == last and schedule.last_slot(following) == following


@settings(max_examples=40)
@given(SCHEDULES, MOMENTS, ZONES)
def test_slots_are_the_same_wherever_the_clock_hangs(schedule: JobSchedule, now: datetime, zone: str) -> None:
    # R7: where the hour of a clock comes twice or never, the slots do neither
    assert schedule.last_slot(now.astimezone(ZoneInfo(zone))) == schedule.last_slot(now)


@pytest.mark.parametrize("day", [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)])
def test_the_days_on_which_clocks_change_have_as_many_slots_as_others(day: datetime) -> None:
    # R7
    oslo = [(day + timedelta(minutes=n)).astimezone(ZoneInfo("Europe/Oslo")) for n in range(24 * 60)]
    assert len({every_minutes(30).last_slot(now) for now in oslo}) == 48
    assert len({daily(1, 30).last_slot(now) for now in oslo[::10]}) == 2, "the one of the day before, and its own"


def test_days_of_the_week_are_those_of_the_calendar_and_a_schedule_ends_with_its_dates() -> None:
    wednesday = datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert weekly("Monday", 6).last_slot(wednesday) == datetime(2026, 3, 2, 6, tzinfo=UTC)
    assert weekly("Sunday", 5).last_slot(wednesday) == datetime(2026, 3, 1, 5, tzinfo=UTC)
    assert daily(13).last_slot(wednesday) == datetime(2026, 3, 3, 13, tzinfo=UTC)
    assert len(JOBS) >= 15
    for name, job in JOBS.items():
        assert job.name == name and job.description.endswith(".") and job.schedule.description, name
    # a schedule ends and begins with its dates
    schedule = schedule_of("embed", every="1 h", start=date(2026, 1, 2), end=datetime(2026, 1, 2, 2, 30, tzinfo=UTC))
    assert schedule.last_slot(datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert schedule.next_slot(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 2, tzinfo=UTC)
    assert schedule.next_slot(datetime(2026, 1, 2, 2, tzinfo=UTC)) is None
    assert schedule.last_slot(datetime(2027, 1, 2, tzinfo=UTC)) == datetime(2026, 1, 2, 2, tzinfo=UTC)


@given(st.integers(1, 1_000), st.floats(0, 1))
def test_a_failed_run_waits_longer_each_time_and_never_long(attempts: int, luck: float) -> None:
    wait = backoff_delay(attempts, luck)
    assert timedelta(seconds=2.5) <= wait <= timedelta(minutes=15)
    assert backoff_delay(attempts + 1, luck) >= wait
    assert backoff_delay(attempts, 0) <= wait <= backoff_delay(attempts, 1)


def schedule_of(job: str, **table: object) -> JobSchedule:
    return build_schedules({job: table})[job]


@pytest.mark.parametrize(
    ("cron", "day", "slots"),
    [
        ("30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), ["29 03:30+0200", "30 02:30+0200"]),
        ("30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), ["25 02:30+0200", "26 02:30+0100"]),
        ("30 7 * * mon-fri", datetime(2026, 3, 27, 5, tzinfo=UTC), ["27 07:30+0100", "30 07:30+0200"]),
        ("0 8 * * 7", datetime(2026, 10, 24, 12, tzinfo=UTC), ["25 08:00+0100", "01 08:00+0100"]),
    ],
)
def test_a_cron_expression_is_obeyed_across_a_change_of_summer_time(cron: str, day: datetime, slots: list[str]) -> None:
    # R7
    berlin, schedule = ZoneInfo("Europe/Berlin"), schedule_of("remind", cron=cron, timezone="Europe/Berlin")
    first = schedule.next_slot(day)
    assert first is not None
    second = schedule.next_slot(first)
    assert [f"{one.astimezone(berlin):%d %H:%M%z}" for one in (first, second) if one] == slots
    assert second is not None and schedule.last_slot(second) == second
    assert schedule.last_slot(second - timedelta(seconds=1)) == first


def test_every_hour_runs_each_hour_of_a_day_of_25_hours() -> None:
    # R7
    schedule, now = (
        schedule_of("remind", cron="5 * * * *", timezone="Europe/Berlin"),
        datetime(2026, 10, 24, 22, tzinfo=UTC),
    )
    slots = set[datetime]()
    while now < datetime(2026, 10, 25, 23, tzinfo=UTC):
        following = schedule.next_slot(now)
        assert following is not None
        slots.add(now := following)
    assert len(slots) == 26, "25 hours and the first of the next day"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"cron": "30 7 * * mon-fri", "timezone": "Europe/Berlin"}, "at 07:30 on Monday to Friday Europe/Berlin"),
        ({"cron": "0 4 * * *"}, "daily at 04:00 UTC"),
        ({"cron": "0 4 1,15 1-3 *"}, "at 04:00 on day 1,15 of the month in January to March UTC"),
        ({"cron": "0 6,18 * * 0"}, "at 06:00 and 18:00 on Sunday UTC"),
        ({"cron": "7-9 3 * * *"}, "by cron '7-9 3 * * *' UTC"),
        ({"every": "90 min", "jitter": 60}, "every 90 minutes, up to 1 minute later"),
        ({"timezone": "Asia/Tokyo", "end": date(2030, 1, 31)}, "daily at 07:00 Asia/Tokyo, until 2030-01-31"),
        ({"enabled": False}, "off"),
    ],
)
def test_a_schedule_of_the_settings_is_said_in_words(table: dict[str, object], words: str) -> None:
    assert schedule_of("remind", **table).description == words


@pytest.mark.parametrize(
    ("job", "table", "said"),
    [
        ("remind", {"cron": "30 25 * * *"}, "remind"),
        ("remind", {"cron": "30 7 * *"}, "4 fields"),
        ("remind", {"cron": "0 0 31 2 *"}, "never come"),
        ("remind", {"cron": "* * * * * *"}, "6 fields"),
        ("remind", {"cron": ""}, "0 fields"),
        ("remind", {"cron": "*/0 * * * *"}, "higher than 0"),
        ("remind", {"jitter": 10**9}, "21600"),
        ("remind", {"start": date(2030, 1, 1), "end": date(2020, 1, 1)}, "never come"),
        ("embed", {"start": date(2030, 1, 1), "end": date(2020, 1, 1)}, "never come"),
        ("embed", {"every": "1 min", "start": date(1, 1, 1), "timezone": "Asia/Tokyo"}, "between 1971"),
        ("embed", {"every": "0 s"}, "less than 30 seconds"),
        ("remind", {"enabled": False, "cron": "nonsense"}, "1 fields"),
        ("remind", {"cron": "0 7 * * *", "timezone": "Europe/Atlantis"}, "no time zone"),
        ("remind", {"cron": "0 7 * * *", "timezone": "../../etc/passwd"}, "no time zone"),
        ("remind", {"every": "soon"}, "no interval"),
        ("embed", {"every": "5 s"}, "less than 30 seconds"),
        ("remind", {"cron": "0 7 * * *", "every": "1 d"}, "exclude"),
        ("remind", {"crom": "0 7 * * *"}, "jobs.remind.crom"),
        ("remnid", {"cron": "0 7 * * *"}, "no job 'remnid'"),
    ],
)
def test_a_bad_schedule_is_refused_with_the_remedy(job: str, table: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        build_schedules({job: table})
    assert refused.value.hint and ("cron = " in refused.value.hint or "another job: embed" in refused.value.hint)
    with pytest.raises(ConfigError, match=said):
        check_settings(load({"jobs": {job: table}}))


@pytest.mark.parametrize("table", [{"cron": "0 7 * * *"}, {"every": "1 h"}, {}])
@pytest.mark.parametrize("job", ["remind", "embed"])
def test_a_jitter_moves_no_slot_or_each_look_would_queue_a_run(job: str, table: dict[str, object]) -> None:
    # R7
    now, plain = datetime(2026, 3, 1, 10, 13, tzinfo=UTC), schedule_of(job, **table)
    delayed = schedule_of(job, **table, jitter=21_600)
    assert delayed.jitter_seconds == 21_600
    assert {delayed.last_slot(now) for _ in range(5)} == {plain.last_slot(now)}
    assert {delayed.next_slot(now) for _ in range(5)} == {plain.next_slot(now)}


class CountedTrigger(CronTrigger):
    steps = 0

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        type(self).steps += 1
        return super().get_next_fire_time(previous_fire_time, now)


@pytest.mark.parametrize(
    ("fields", "end", "last"),
    [
        ({"minute": "*"}, datetime(2025, 11, 1, tzinfo=UTC), datetime(2025, 11, 1, tzinfo=UTC)),
        ({"minute": "*", "month": "1"}, None, datetime(2026, 1, 31, 23, 59, tzinfo=UTC)),
        ({"minute": "0", "hour": "0", "day": "29", "month": "2"}, None, datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_last_slot_is_found_in_few_steps_however_long_ago(
    fields: dict[str, str], end: datetime | None, last: datetime
) -> None:
    # R7: the worker looks for it every 15 seconds, on the event loop
    CountedTrigger.steps = 0
    schedule = CronSchedule(
        trigger=CountedTrigger(**cast("dict[str, Any]", fields), end_date=end, timezone=UTC), description=""
    )
    now = datetime(2028, 2, 28, tzinfo=UTC) if "day" in fields else datetime(2026, 11, 27, 7, tzinfo=UTC)
    assert schedule.last_slot(now) == last
    assert CountedTrigger.steps < 100
