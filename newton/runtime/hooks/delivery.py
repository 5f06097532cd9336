"""Hand over what was said and done, and ask for contexts: the requests of one hook to the daemon."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from newton.runtime.hooks import spool
from newton.runtime.hooks.daemon_connection import (
    DaemonUnavailableError,
    HookConnection,
    RequestRefusedError,
)
from newton.runtime.hooks.json_values import JsonObject
from newton.runtime.hooks.spool import SpoolEntry

MAX_REQUESTS = 2  # of one hook


class DeliveryOptions(NamedTuple):
    """The agent, whether it may be created, the size of contexts in tokens, and the data folder."""

    agent: str
    may_create_agent: bool
    max_tokens: int
    data_dir: Path


class HookDelivery:
    """The requests of one hook. Without a `connection`, `unavailable` says why; `notes` are for standard error."""

    def __init__(self, options: DeliveryOptions, connection: HookConnection | None, unavailable: str = "") -> None:
        self.options = options
        self.connection = connection
        self.unavailable = unavailable
        self.notes: list[str] = []

    def hand_over(self, session: str, messages: Sequence[JsonObject] = (), events: Sequence[JsonObject] = ()) -> None:
        """Store messages and events in a session, those of it that wait first. What cannot be stored now waits."""
        waiting = spool.read_batch(self.options.data_dir, agent=self.options.agent, session=session)
        if not (messages or events or waiting):
            return
        body = {"messages": [*waiting.messages, *messages], "events": [*waiting.events, *events]} if waiting else {}
        body = body or {"messages": list(messages), "events": list(events)}
        try:
            self._post(f"/v1/sessions/{quote(session, safe='')}/messages", body)
        except DaemonUnavailableError as error:
            self._spool(session, messages, events, error)
            return
        except RequestRefusedError as error:
            self.notes.append(f"not stored: {error}")
        if waiting:
            spool.remove_lines(self.options.data_dir, waiting.lines)
            if self.notes:
                self._retry_without_waiting(session, messages, events)

    def hand_over_waiting(self) -> None:
        """Store what waits longest, if a request is left for it."""
        if self.connection is None or self.connection.requests >= MAX_REQUESTS or self.notes:
            return
        if waiting := spool.read_batch(self.options.data_dir, agent=self.options.agent):
            self.hand_over(waiting.session)

    def begin_session(self, session: str) -> None:
        """Create the session, with what waits for it. A new agent is created if the options allow it."""
        if spool.read_batch(self.options.data_dir, agent=self.options.agent, session=session):
            self.hand_over(session)
            return
        self._try_post("/v1/sessions", {"session": session})

    def close_session(self, session: str) -> None:
        """Close a session: it becomes an episode. One without messages does not exist."""
        try:
            self._post(f"/v1/sessions/{quote(session, safe='')}/close", {})
        except DaemonUnavailableError as error:
            self.notes.append(f"the session is closed when it is idle: {error}")
        except RequestRefusedError as error:
            if error.code != "not_found":
                self.notes.append(str(error))

    def find_context(self, text: str, session: str, **fields: Any) -> JsonObject | None:
        """Return the context for a text; None if it cannot be built."""
        body = {"input": text, "session": session, "max_tokens": self.options.max_tokens, **fields}
        return self._try_post("/v1/context", body)

    def check_censors(self, text: str) -> JsonObject | None:
        """Return the censors that match a text; None if they cannot be checked."""
        return self._try_post("/v1/censors/check", {"text": text, "stage": "action"})

    def _try_post(self, path: str, body: JsonObject) -> JsonObject | None:
        if self.notes:
            return None  # an earlier request of this hook failed, and this one would only take time
        try:
            return self._post(path, body)
        except (DaemonUnavailableError, RequestRefusedError) as error:
            self.notes.append(str(error))
            return None

    def _post(self, path: str, body: JsonObject) -> JsonObject:
        """Send a request. If the agent does not exist, create it and raise DaemonUnavailableError."""
        if self.connection is None:
            raise DaemonUnavailableError(self.unavailable)
        try:
            return self.connection.post(path, body)
        except RequestRefusedError as error:
            if not (error.code == "not_found" and self.options.may_create_agent and self.connection.requests == 1):
                raise
            self.connection.post("/v1/agents", {"name": self.options.agent}, is_for_agent=False)
            raise DaemonUnavailableError(f"the agent {self.options.agent} is new; the next hook uses it") from None

    def _retry_without_waiting(
        self, session: str, messages: Sequence[JsonObject], events: Sequence[JsonObject]
    ) -> None:
        """Store what is new after the daemon has refused it together with what waited."""
        if not (messages or events):
            return
        if self.connection and self.connection.requests < MAX_REQUESTS:
            self.hand_over(session, messages, events)
        else:
            self._spool(session, messages, events, DaemonUnavailableError("this hook may send no more requests"))

    def _spool(
        self, session: str, messages: Sequence[JsonObject], events: Sequence[JsonObject], reason: Exception
    ) -> None:
        if not (messages or events):
            self.notes.append(str(reason))
        elif spool.add_entry(self.options.data_dir, SpoolEntry(self.options.agent, session, messages, events)):
            self.notes.append(f"kept for a later hook: {reason}")
        else:
            self.notes.append(f"not stored, and {spool.SPOOL_FILE} takes no more: {reason}")
