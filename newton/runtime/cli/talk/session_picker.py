"""The list of sessions from which a person picks the one to resume."""

from collections.abc import Awaitable, Callable, Sequence

from newton.dialogue.branches import SessionInfo
from newton.errors import InputError
from newton.runtime.chat_backend.protocol import ChatBackend, run_named
from newton.runtime.cli.printing import say

MAX_SESSIONS = 20


async def pick_session(backend: ChatBackend, ask: Callable[[str], Awaitable[str]]) -> str | None:
    """Show the sessions used last, ask for one, and return its name; None if the person wants a new one.

    Raises InputError for an answer that names none of them.
    """
    sessions: Sequence[SessionInfo] = (await run_named(backend, "sessions", limit=MAX_SESSIONS)).items
    if not sessions:
        say("There are no sessions yet.")
        return None
    for number, one in enumerate(sessions, 1):
        say(f"{number:>3}  {one.session:<40} created {one.created_at:%Y-%m-%d}")
    answer = (await ask("Number of the session to resume (Enter: a new one): ")).strip()
    if not answer:
        return None
    if answer.isdecimal() and 1 <= int(answer) <= len(sessions):
        return sessions[int(answer) - 1].session
    raise InputError(f"{answer!r} is not the number of a session.", hint=f"Give a number from 1 to {len(sessions)}.")
