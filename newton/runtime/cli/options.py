"""What several commands take."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from cyclopts import Parameter, Token

from newton.clock import SystemClock
from newton.errors import InputError
from newton.memory import hygiene
from newton.memory.spans import spans
from newton.runtime.cli.printing import visible
from newton.settings import Settings, load

Agent = Annotated[str | None, Parameter("--agent", help="Whose memory to use; each name is a mind of its own.")]
AsJson = Annotated[bool, Parameter("--json", negative=(), help="Print JSON for programs.")]
FrameName = Annotated[str | None, Parameter("--frame", help="Look at the input in this frame instead of choosing one.")]
ProfileName = Annotated[str | None, Parameter("--profile", help="Score memories by this profile.")]
Budget = Annotated[int | None, Parameter("--budget", help="The most tokens the context may have.")]


def settings(agent: str | None = None, **flags: object) -> Settings:
    """Settings with what was said on the command line on top."""
    given = {"agent": agent, **flags}
    chosen = load({name: value for name, value in given.items() if value is not None})
    hygiene.ref(chosen.agent, what="agent")
    return chosen


def session_name(session: str | None) -> str | None:
    """The name of a session as it was given. Raises InputError when it is no name."""
    return None if session is None else hygiene.ref(session, what="session")


def moment(said: str, *, now: datetime, end: bool = False) -> datetime:
    """The beginning, or the end, of a time as a person says it: a day, a moment with its zone, or words; in UTC.

    Raises InputError for what is no time, and for a moment without a zone.
    """
    told = said.strip()
    try:
        given = datetime.fromisoformat(told)
    except ValueError:
        return _spelt(told, now=now, end=end)
    if given.tzinfo is None and ":" not in told:
        return hygiene.moment(given.replace(tzinfo=UTC)) + timedelta(days=int(end))
    return hygiene.moment(given)


def _spelt(told: str, *, now: datetime, end: bool) -> datetime:
    spelt = " ".join(told.lower().split())
    for text in (spelt, f"in {spelt}"):  # a month or a year alone
        found = spans(text, now=now)
        at = (found[0].end if end else found[0].start) if found and found[0].words == text else None
        if at is not None:
            return hygiene.moment(at)
    raise InputError(
        f"{told!r} is no {'end of a time' if end else 'time'}.",
        hint="Write a day as 2026-01-31, a time as 2026-03-01T09:00:00Z, or words: yesterday, last week, March 2024.",
    )


def _beginning(_: object, tokens: Sequence[Token]) -> datetime:
    return moment(tokens[0].value, now=SystemClock().now())


def _end(_: object, tokens: Sequence[Token]) -> datetime:
    return moment(tokens[0].value, now=SystemClock().now(), end=True)


# What takes a time, and of a longer one its beginning or its end.
When = Parameter(converter=_beginning)
Until = Parameter(converter=_end)


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes to what has no way back. Raises InputError where there is none."""
    if not sys.stdin.isatty():
        raise InputError("This has no way back, and nobody can be asked here.", hint="Give --yes.")
    return input(visible(f"{question} [y/N] ")).strip().lower() in {"y", "yes"}
