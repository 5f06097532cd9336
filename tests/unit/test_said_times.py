"""Times as a person types them for a command."""

from datetime import UTC, datetime

import pytest

from newton.errors import InputError
from newton.runtime.cli.options import parse_time

NOW = datetime(2024, 5, 15, 14, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("2026-01-31", "2026-01-31", "2026-02-01"),
        ("2026-01-31T09:00:00+02:00", "2026-01-31T09:00:00+02:00", "2026-01-31T09:00:00+02:00"),
        ("yesterday", "2024-05-14", "2024-05-15"),
        (" Last  week ", "2024-05-06", "2024-05-13"),
        ("2024-03", "2024-03-01", "2024-04-01"),
        ("March", "2024-03-01", "2024-04-01"),
        ("2023", "2023-01-01", "2024-01-01"),
        ("two days ago", "2024-05-13", "2024-05-14"),
        ("next friday", "2024-05-17", "2024-05-18"),
    ],
)
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
