"""Sessions of browsers that are signed in to the dashboard, kept in the memory of the daemon.

A session is opened by a one-time link, and acts with the token that requested the link: it may do what the token may
do, and ends at the first request after the token is revoked. A restart of the daemon ends all sessions.
"""

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeVar

from newton.clock import monotonic_ms
from newton.memory.redaction.own_secrets import OWN_SECRETS
from newton.runtime.access.token_text import encode

Entry = TypeVar("Entry")

LINK_SECONDS = 600  # lifetime of a link that is not used
IDLE_SECONDS = 12 * 3_600  # lifetime of a session without requests
MAX_LINKS, MAX_SESSIONS = 1_000, 1_000  # the oldest are dropped above


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInGrant:
    """The rights of a browser's session: the token, and the agent, user and project that its requests name, or None."""

    token: str = field(repr=False)
    agent: str | None = None
    user: str | None = None
    project: str | None = None


@dataclass(slots=True, kw_only=True)
class BrowserSession:
    """A signed-in browser. Each form contains `csrf_token`. `notices` are messages to show on the next page.

    `grant` has the rights of the session; `agent` and `project` are those whose pages it shows now.
    """

    grant: SignInGrant
    agent: str | None
    project: str | None = None
    csrf_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    notices: list[str] = field(default_factory=list[str])
    used_at_ms: float = field(default_factory=monotonic_ms)


class BrowserSessions:
    """The one-time links that are not used yet, and the open sessions. Their codes and ids are kept as hashes."""

    def __init__(self) -> None:
        self._links: OrderedDict[bytes, tuple[float, SignInGrant]] = OrderedDict()
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()

    def create_code(self, grant: SignInGrant) -> str:
        """Return a code that opens one session within `LINK_SECONDS`."""
        code = encode(secrets.token_bytes(32))
        OWN_SECRETS.add("sign-in", code)
        self._links[_hash(code)] = (monotonic_ms(), grant)
        _drop_oldest(self._links, MAX_LINKS)
        return code

    def has_code(self, code: str) -> bool:
        """Return whether a code can still open a session."""
        created_at_ms, grant = self._links.get(_hash(code), (0.0, None))
        return grant is not None and monotonic_ms() - created_at_ms <= LINK_SECONDS * 1_000

    def sign_in(self, code: str) -> str | None:
        """Open a session with a code and return the id of the session; None if the code is unknown, used or expired."""
        is_open = self.has_code(code)
        _, grant = self._links.pop(_hash(code), (0.0, None))
        if grant is None or not is_open:
            return None
        session_id = secrets.token_urlsafe(32)
        OWN_SECRETS.add("sign-in", session_id)
        self._sessions[_hash(session_id)] = BrowserSession(grant=grant, agent=grant.agent, project=grant.project)
        _drop_oldest(self._sessions, MAX_SESSIONS)
        return session_id

    def find(self, session_id: str) -> BrowserSession | None:
        """Return an open session and extend its lifetime; None if there is none with this id."""
        key = _hash(session_id)
        session = self._sessions.get(key)
        if session is None:
            return None
        if monotonic_ms() - session.used_at_ms > IDLE_SECONDS * 1_000:
            del self._sessions[key]
            return None
        session.used_at_ms = monotonic_ms()
        self._sessions.move_to_end(key)
        return session

    def sign_out(self, session_id: str) -> None:
        """End a session, if it is open."""
        self._sessions.pop(_hash(session_id), None)


def cookie_name(scheme: str, port: int | None) -> str:
    """Return the name of a daemon's cookie. It contains the port, because all ports of a host share their cookies."""
    return f"newton_session_{port or scheme}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _drop_oldest(entries: OrderedDict[bytes, Entry], limit: int) -> None:
    while len(entries) > limit:
        entries.popitem(last=False)
