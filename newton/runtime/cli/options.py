"""What several commands take."""

import sys
from datetime import UTC, datetime, time
from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.memory import hygiene
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


def day(given: datetime | None) -> datetime | None:
    """A day alone begins at midnight UTC. Raises InputError for a time without a zone."""
    if given is None:
        return None
    alone = given.tzinfo is None and given.time() == time()
    return hygiene.moment(given.replace(tzinfo=UTC) if alone else given)


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes to what has no way back. Raises InputError where there is none."""
    if not sys.stdin.isatty():
        raise InputError("This has no way back, and nobody can be asked here.", hint="Give --yes.")
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
