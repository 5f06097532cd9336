"""The requests of one hook to the daemon: store messages and events, and ask for a context."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from newton.runtime.hooks import spool
from newton.runtime.hooks.daemon_connection import DaemonUnavailableError, HookConnection, RequestRefusedError
from newton.runtime.hooks.hook_input import HookOptions, JsonObject, as_list, as_object
from newton.runtime.hooks.spool import SpoolEntry

MAX_REQUESTS = 2  # of one hook


class HookDelivery:
    """The requests of one hook to the daemon. `notes` are messages for standard error about failed requests."""

    def __init__(self, options: HookOptions, data_dir: Path, env: Mapping[str, str]) -> None:
        self.options, self.data_dir = options, data_dir
        self.connection = HookConnection(data_dir, options.agent, env)
        self.notes: list[str] = []

    def hand_over(self, session: str, messages: Sequence[JsonObject] = (), events: Sequence[JsonObject] = ()) -> None:
        """Store messages and events in a session, after those of the session that wait in the spool file.

        If the daemon is unavailable, append the new messages and events to the spool file.
        """
        older, waiting = spool.read_batch(self.data_dir, agent=self.options.agent, session=session)
        if not (messages or events or waiting):
            return
        body: JsonObject = {
            "messages": [*older.messages, *messages],
            "events": [*older.events, *events],
            "on_invalid": "skip",
        }
        try:
            stored = self._post(f"/v1/sessions/{quote(session, safe='')}/messages", body)
        except DaemonUnavailableError as error:
            self._spool(session, messages, events, error)
            return
        except RequestRefusedError as error:
            self.notes.append(f"the messages and events are not stored: {error}")
            if waiting and (messages or events):  # a later hook hands over the new ones alone
                self._spool(session, messages, events, error)
        else:
            self._note_refused(as_list(stored.get("refused")), body)
        if waiting:
            spool.remove_lines(self.data_dir, waiting)

    def _note_refused(self, refused: Sequence[JsonObject], body: JsonObject) -> None:
        """Say which item is not stored and why; the daemon has stored the others."""
        if not refused:
            return
        first, more = refused[0], f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        self.notes.append(f"{_describe_item(str(first.get('item')), body)}{more} is not stored: {first.get('detail')}")

    def hand_over_waiting(self) -> None:
        """Store the oldest entries of the spool file, unless an earlier request failed or no request is left."""
        if self.connection.requests >= MAX_REQUESTS or self.notes:
            return
        oldest, waiting = spool.read_batch(self.data_dir, agent=self.options.agent)
        if waiting:
            self.hand_over(oldest.session)

    def begin_session(self, session: str) -> None:
        """Create the session in Newton, together with its messages that wait in the spool file, if any.

        Create the agent too if it does not exist and the options allow it.
        """
        _, waiting = spool.read_batch(self.data_dir, agent=self.options.agent, session=session)
        if waiting:
            self.hand_over(session)
            return
        self._try_post("/v1/sessions", {"session": session})

    def close_session(self, session: str) -> None:
        """Close the session, so that Newton stores it as an episode. A session without messages is ignored."""
        try:
            self._post(f"/v1/sessions/{quote(session, safe='')}/close", {})
        except DaemonUnavailableError as error:
            self.notes.append(f"the session is not closed now; Newton closes it when it is idle: {error}")
        except RequestRefusedError as error:
            if error.code != "not_found":
                self.notes.append(str(error))

    def find_context(self, text: str, session: str, **fields: Any) -> JsonObject | None:
        """Return the context for a text as the API's JSON object; None if the request failed.

        The prompt goes on in any case, so the context has what was found in the time of the hook. `fields` are further
        fields of the request.
        """
        budget = self.options.max_tokens
        body = {"input": text, "session": session, "max_tokens": budget, "allow_partial": True, **fields}
        return self._try_post("/v1/context", body)

    def check_censors(self, text: str) -> JsonObject | None:
        """Return the API's answer with the censors (blocking or warning rules) that match a text; the matches count.

        Return None if the request failed.
        """
        return self._try_post("/v1/censors/check", {"text": text, "stage": "action", "counts": True})

    def _try_post(self, path: str, body: JsonObject) -> JsonObject | None:
        if self.notes:
            return None  # an earlier request of this hook failed, and this one would only take time
        try:
            return self._post(path, body)
        except (DaemonUnavailableError, RequestRefusedError) as error:
            self.notes.append(str(error))
            return None

    def _post(self, path: str, body: JsonObject) -> JsonObject:
        """Send a request and return the JSON response.

        If the agent does not exist and may be created, create it and raise DaemonUnavailableError, because no request
        is left.
        """
        try:
            return self.connection.post(path, body)
        except RequestRefusedError as error:
            if not (error.code == "not_found" and self.options.per_project and self.connection.requests == 1):
                raise
            self.connection.post("/v1/agents", {"name": self.options.agent}, is_for_agent=False)
            raise DaemonUnavailableError(
                f"the agent {self.options.agent} was just created; the next hook uses it"
            ) from None

    def _spool(
        self, session: str, messages: Sequence[JsonObject], events: Sequence[JsonObject], reason: Exception
    ) -> None:
        if not (messages or events):
            self.notes.append(str(reason))
        elif spool.add_entry(self.data_dir, SpoolEntry(self.options.agent, session, [*messages], [*events])):
            self.notes.append(f"the messages and events are not stored yet; a later hook tries again: {reason}")
        else:
            self.notes.append(
                f"the messages and events are lost, because {spool.SPOOL_FILE} is full or not writable: {reason}"
            )


def _describe_item(item: str, body: JsonObject) -> str:
    """Return the role or type, and the ref, of the item at a place such as `messages[3]` of a request."""
    name, _, index = item.rstrip("]").partition("[")
    items = as_list(body.get(name))
    fields = as_object(items[int(index)] if index.isdecimal() and int(index) < len(items) else None)
    kind = f"message of {fields.get('role')!r}" if name == "messages" else f"event {fields.get('event_type')!r}"
    return f"the {kind} with the ref {fields.get('ref')!r}"
