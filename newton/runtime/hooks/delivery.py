"""The requests of one hook to the daemon: where they go, and what they store and ask for."""

import json
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from newton.runtime.daemon_socket import connect
from newton.runtime.hooks import spool
from newton.runtime.hooks.hook_input import TOKEN_VARIABLE, URL_VARIABLE, HookOptions, JsonObject, as_list, as_object
from newton.runtime.hooks.spool import SpoolEntry

ADDRESS_FILE, TOKEN_FILE, OPERATOR_PREFIX = "daemon.json", "operator.token", "nwo_"
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
CONNECT_SECONDS, TOTAL_SECONDS = 0.5, 4.0
MEMORY_SHARE = 0.8  # of the time that is left, for what the daemon waits for; the rest is for its answer
RETRYABLE_STATUSES = frozenset({401, 403, 408, 425, 429})  # a later hook may succeed


class DaemonUnavailableError(Exception):
    """No daemon answers, or it cannot serve the request now; the same request may succeed later."""


class RequestRefusedError(Exception):
    """The daemon has refused the request, and would refuse it again. `code` is Newton's error code."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class DaemonLocation(NamedTuple):
    """The URL of a daemon and a token for it."""

    url: str
    token: str


def find_daemon(data_dir: Path, env: Mapping[str, str]) -> DaemonLocation:
    """Return the URL of the daemon and a token for it.

    The URL is that of the variable NEWTON_URL, or of the daemon that runs for the data folder. Raises
    DaemonUnavailableError if there is no daemon or no token.
    """
    url = env.get(URL_VARIABLE) or _read_address(data_dir)
    parts = urlsplit(url)
    is_local = parts.hostname in LOOPBACK_HOSTS
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DaemonUnavailableError(
            f"{url!r} is not the URL of a daemon; set NEWTON_URL to one such as http://127.0.0.1:8700"
        )
    if parts.scheme == "http" and not is_local:
        raise DaemonUnavailableError(
            f"{url} is not encrypted; set NEWTON_URL to an https URL for a daemon on another machine"
        )
    token = env.get(TOKEN_VARIABLE, "").strip() or (_read_operator_token(data_dir) if is_local else "")
    if not token:
        raise DaemonUnavailableError("there is no token; set NEWTON_TOKEN (`newton tokens create NAME` prints one)")
    return DaemonLocation(url, token)


class HookConnection:
    """The requests of one hook, with a common deadline. `requests` counts them.

    They go to the socket of the data folder, unless there is none or the environment names a daemon or a token.
    """

    def __init__(self, data_dir: Path, options: HookOptions, env: Mapping[str, str]) -> None:
        self._data_dir, self._options, self._env = data_dir, options, env
        self._deadline = time.monotonic() + TOTAL_SECONDS
        self.requests = 0

    def post(self, path: str, body: JsonObject, *, is_for_agent: bool = True) -> JsonObject:
        """Send a POST request with a JSON body and return the JSON response.

        The headers of the agent and the project are omitted if `is_for_agent` is False. Raises DaemonUnavailableError
        if the request may succeed later, and RequestRefusedError otherwise.
        """
        self.requests += 1
        left = max(self._deadline - time.monotonic(), 0.05)
        headers = {"Content-Type": "application/json", "X-Newton-Timeout": f"{left * MEMORY_SHARE:.3f}"}
        headers |= {"X-Newton-Agent": self._options.agent} if is_for_agent else {}
        headers |= {"X-Newton-Project": self._options.project} if is_for_agent and self._options.project else {}
        is_named = any(self._env.get(name) for name in (URL_VARIABLE, TOKEN_VARIABLE))
        try:
            if local := None if is_named else connect(self._data_dir):
                local.settimeout(left)
                with local:
                    return _to_json_object(*_post_local(local, path, json.dumps(body).encode(), headers))
            return _to_json_object(*self._post_to_url(path, json.dumps(body), headers, left))
        except OSError as error:
            raise DaemonUnavailableError(f"the daemon does not answer ({str(error) or type(error).__name__})") from None

    def _post_to_url(self, path: str, body: str, headers: JsonObject, left: float) -> tuple[int, bytes]:
        location = find_daemon(self._data_dir, self._env)
        headers["Authorization"] = f"Bearer {location.token}"
        if not location.token.startswith(OPERATOR_PREFIX):
            headers.pop("X-Newton-Agent", None)
        parts, client = urlsplit(location.url), import_module("http.client")  # takes longer to load than a hook to run
        connect_to = client.HTTPSConnection if parts.scheme == "https" else client.HTTPConnection
        try:
            with closing(connect_to(parts.hostname, parts.port, timeout=CONNECT_SECONDS)) as connection:
                connection.connect()
                connection.sock.settimeout(left)
                connection.request("POST", parts.path.rstrip("/") + path, body, headers)
                response = connection.getresponse()
                return response.status, response.read()
        except client.HTTPException as error:
            raise OSError(str(error)) from None


def _post_local(connection: socket.socket, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Post over the socket, in HTTP/1.0: the answer is neither chunked nor followed by another."""
    lines = [f"POST {path} HTTP/1.0", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    connection.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "\r\n"]).encode() + body)
    with connection.makefile("rb") as stream:
        head, _, content = stream.read().partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return (int(status[0]), content) if status else (503, content)


def _to_json_object(status: int, content: bytes) -> JsonObject:
    """Return the JSON body of a response. For an error, raise the exception that says whether to try again later."""
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    body = as_object(value)
    if not isinstance(value, dict):
        raise DaemonUnavailableError(f"the response of status {status} is not from a daemon of Newton")
    if status < 300:
        return body
    detail = str(body.get("detail") or f"status {status}")
    if status >= 500 or status in RETRYABLE_STATUSES:
        raise DaemonUnavailableError(detail)
    code, hint = str(body.get("type", "")).rpartition(":")[2], str(body.get("hint") or "")
    raise RequestRefusedError(code, f"{detail} {hint}".strip())


def _read_address(data_dir: Path) -> str:
    try:
        return str(json.loads((data_dir / ADDRESS_FILE).read_bytes())["url"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DaemonUnavailableError("no daemon runs; start it with `newton serve`") from None


def _read_operator_token(data_dir: Path) -> str:
    """Return the operator's token, or "" if its file cannot be read.

    Raises DaemonUnavailableError if other users can read the file.
    """
    path = data_dir / TOKEN_FILE
    try:
        if path.stat().st_mode & 0o077:
            raise DaemonUnavailableError(f"other users can read {path}; run `chmod 600 {path}`")
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


MAX_REQUESTS = 2  # of one hook


class HookDelivery:
    """The requests of one hook to the daemon. `notes` are messages for standard error about those that failed."""

    def __init__(self, options: HookOptions, data_dir: Path, env: Mapping[str, str]) -> None:
        self.options, self.data_dir = options, data_dir
        self.connection = HookConnection(data_dir, options, env)
        self.notes: list[str] = []

    def hand_over(self, session: str, messages: Sequence[JsonObject] = (), events: Sequence[JsonObject] = ()) -> None:
        """Store messages and events in a session, after those of the session that wait in the spool file.

        If the daemon is unavailable, append the new messages and events to the spool file.
        """
        older, waiting = spool.read_batch(self.data_dir, agent=self.options.owner, session=session)
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
        oldest, waiting = spool.read_batch(self.data_dir, agent=self.options.owner)
        if waiting:
            self.hand_over(oldest.session)

    def begin_session(self, session: str) -> None:
        """Create the session in Newton, together with its messages that wait in the spool file, if any.

        Create the agent too if it does not exist and the options allow it.
        """
        _, waiting = spool.read_batch(self.data_dir, agent=self.options.owner, session=session)
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
        """Return the context (text from memory) for a prompt as the API's JSON object; None if the request failed.

        It has what was found in the time of the hook, because the prompt does not wait longer. `fields` are further
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
        elif spool.add_entry(self.data_dir, SpoolEntry(self.options.owner, session, [*messages], [*events])):
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
