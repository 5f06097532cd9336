"""The connection of a hook to the daemon: the socket of its data folder, or its URL and a token."""

import json
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from newton.runtime.daemon_socket import connect
from newton.runtime.hooks.hook_input import TOKEN_VARIABLE, URL_VARIABLE, JsonObject, as_object

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

    def __init__(self, data_dir: Path, agent: str, env: Mapping[str, str]) -> None:
        self._data_dir, self._agent, self._env = data_dir, agent, env
        self._deadline = time.monotonic() + TOTAL_SECONDS
        self.requests = 0

    def post(self, path: str, body: JsonObject, *, is_for_agent: bool = True) -> JsonObject:
        """Send a POST request with a JSON body and return the JSON response.

        The agent's header is omitted if `is_for_agent` is False. Raises DaemonUnavailableError if the request may
        succeed later, and RequestRefusedError otherwise.
        """
        self.requests += 1
        left = max(self._deadline - time.monotonic(), 0.05)
        headers = {"Content-Type": "application/json", "X-Newton-Timeout": f"{left * MEMORY_SHARE:.3f}"}
        headers |= {"X-Newton-Agent": self._agent} if is_for_agent else {}
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
