"""What several commands take."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from cyclopts import Parameter, Token

from newton.clock import SystemClock
from newton.errors import InputError
from newton.memory import hygiene
from newton.memory.time_expressions import find_time_ranges
from newton.runtime.cli.printing import visible
from newton.settings import Settings, load

AgentOption = Annotated[str | None, Parameter("--agent", help="Whose memory to use; each name is a mind of its own.")]
JsonOption = Annotated[bool, Parameter("--json", negative=(), help="Print JSON for programs.")]
FrameOption = Annotated[
    str | None, Parameter("--frame", help="Look at the input in this frame instead of choosing one.")
]
ProfileOption = Annotated[str | None, Parameter("--profile", help="Score memories by this profile.")]
BudgetOption = Annotated[int | None, Parameter("--tokens", help="The most tokens the context may have.")]


def load_settings(agent: str | None = None, **flags: object) -> Settings:
    """Settings with what was said on the command line on top."""
    given = {"agent": agent, **flags}
    chosen = load({name: value for name, value in given.items() if value is not None})
    hygiene.clean_ref(chosen.agent, what="agent")
    return chosen


def check_session_name(session: str | None) -> str | None:
    """The name of a session as it was given. Raises InputError when it is no name."""
    return None if session is None else hygiene.clean_ref(session, what="session")


def parse_time(text: str, *, now: datetime, use_end: bool = False) -> datetime:
    """The beginning, or the end, of a time as a person says it: a day, a moment with its zone, or words; in UTC.

    Raises InputError for what is no time, and for a moment without a zone.
    """
    told = text.strip()
    try:
        given = datetime.fromisoformat(told)
    except ValueError:
        return _parse_time_words(told, now=now, use_end=use_end)
    if given.tzinfo is None and ":" not in told:
        return hygiene.validate_time(given.replace(tzinfo=UTC)) + timedelta(days=int(use_end))
    return hygiene.validate_time(given)


def _parse_time_words(raw: str, *, now: datetime, use_end: bool) -> datetime:
    spelt = " ".join(raw.lower().split())
    for text in (spelt, f"in {spelt}"):  # a month or a year alone
        found = find_time_ranges(text, now=now)
        at = (found[0].end if use_end else found[0].start) if found and found[0].phrase == text else None
        if at is not None:
            return hygiene.validate_time(at)
    raise InputError(
        f"{raw!r} is no {'end of a time' if use_end else 'time'}.",
        hint="Write a day as 2026-01-31, a time as 2026-03-01T09:00:00Z, or words: yesterday, last week, March 2024.",
    )


def _parse_start(_: object, tokens: Sequence[Token]) -> datetime:
    return parse_time(tokens[0].value, now=SystemClock().now())


def _parse_end(_: object, tokens: Sequence[Token]) -> datetime:
    return parse_time(tokens[0].value, now=SystemClock().now(), use_end=True)


# What takes a time, and of a longer one its beginning or its end.
StartTime = Parameter(converter=_parse_start)
EndTime = Parameter(converter=_parse_end)


def ask_confirmation(question: str) -> bool:
    """Whether the person at the terminal says yes to what has no way back. Raises InputError where there is none."""
    if not sys.stdin.isatty():
        raise InputError("This has no way back, and nobody can be asked here.", hint="Give --yes.")
    return input(visible(f"{question} [y/N] ")).strip().lower() in {"y", "yes"}
