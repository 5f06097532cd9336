"""The connection of a hook to the daemon: its address, its token and HTTP requests."""

import http.client
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from newton.runtime.hooks.hook_options import TOKEN_VARIABLE, URL_VARIABLE
from newton.runtime.hooks.json_values import JsonObject, as_object

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
    """The URL of a daemon and a token for it. `agent` is the agent to use with an operator's token, else None."""

    url: str
    token: str
    agent: str | None


def find_daemon(data_dir: Path, agent: str, env: Mapping[str, str]) -> DaemonLocation:
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
    return DaemonLocation(url, token, agent if token.startswith(OPERATOR_PREFIX) else None)


class HookConnection:
    """An HTTP connection for the requests of one hook, with a common deadline. `requests` counts the requests."""

    def __init__(self, location: DaemonLocation) -> None:
        parts = urlsplit(location.url)
        is_encrypted = parts.scheme == "https"
        connect = http.client.HTTPSConnection if is_encrypted else http.client.HTTPConnection
        self._http = connect(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {location.token}", "Content-Type": "application/json"}
        if location.agent is not None:
            self._headers["X-Newton-Agent"] = location.agent
        self._deadline = time.monotonic() + TOTAL_SECONDS
        self.requests = 0

    def post(self, path: str, body: JsonObject, *, is_for_agent: bool = True) -> JsonObject:
        """Send a POST request with a JSON body and return the JSON response.

        The agent's header is omitted if `is_for_agent` is False. Raises DaemonUnavailableError if the request may
        succeed later, and RequestRefusedError otherwise.
        """
        self.requests += 1
        headers = {n: v for n, v in self._headers.items() if is_for_agent or n != "X-Newton-Agent"}
        left = max(self._deadline - time.monotonic(), 0.05)
        headers["X-Newton-Timeout"] = f"{left * MEMORY_SHARE:.3f}"
        try:
            if self._http.sock is None:
                self._http.connect()
            if self._http.sock is not None:
                self._http.sock.settimeout(left)
            self._http.request("POST", self._prefix + path, json.dumps(body), headers)
            response = self._http.getresponse()
            return _to_json_object(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise DaemonUnavailableError(f"the daemon does not answer ({str(error) or type(error).__name__})") from None

    def close(self) -> None:
        """Close the HTTP connection."""
        self._http.close()


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
