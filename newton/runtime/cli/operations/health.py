"""Command `newton doctor`: check the installation and print remedies.

The running daemon makes the checks that need the database and the models. Without it, this process opens them.
"""

import asyncio
import json as json_format
import os
import platform
import shlex
from collections.abc import AsyncGenerator
from dataclasses import asdict, replace
from datetime import datetime
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import httpx2
from cyclopts import Parameter

from newton import __version__
from newton.db.server_paths import SERVER_USER, OrphanedDatabase, find_orphans
from newton.errors import NewtonError
from newton.file_access import find_exposure
from newton.providers.upstreams import list_upstreams
from newton.runtime import daemon_address
from newton.runtime.cli.daemon_requests import DaemonRequests, read_state
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say, to_json
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.local_daemon import AGENT_HEADER, find_daemon
from newton.settings import SETTING_GROUPS, Settings

DAEMON_TIMEOUT_SECONDS = 5
STATE_SYMBOLS = {"ok": "✓", "note": "·", "wrong": "✗"}


async def run_doctor(
    *,
    verify: Annotated[
        bool, Parameter(negative=(), help="Also verify by its hash chain that the decision log is unchanged.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Check every part of the installation and print remedies. The exit status is 1 if a check fails.

    Example: newton doctor --json
    """
    settings = load_settings(agent)
    findings = [finding async for finding in _run_checks(settings, verify=verify)]
    values = {name: "-" if value is None else str(value) for name, value in _list_used_settings(settings).items()}
    if json:
        say(to_json({"findings": [asdict(one) for one in findings], "settings": values}))
    else:
        for one in findings:
            say(f"{STATE_SYMBOLS[one.state]} {one.detail}" + (f"\n    {one.hint}" if one.hint else ""))
        say("\nSettings (newton.toml, then NEWTON_… in the environment, then flags):")
        width = max(map(len, values)) + 2
        for group in SETTING_GROUPS:
            say(f"\n{group.__doc__}")
            shown = {name: values[name] for name in group.model_fields if name in values}
            say("\n".join(f"  {name:<{width}}{value}" for name, value in shown.items()))
    return 1 if any(one.state == "wrong" for one in findings) else 0


def _list_used_settings(settings: Settings) -> dict[str, object]:
    """Return the settings by name, without those of an embedding or chat model that is not configured."""
    unused = [] if settings.embedding_provider == "openai" else ["embedding_model", "embedding_dimensions"]
    unused += [] if list_upstreams(settings) else ["openai_model"]
    return {name: value for name, value in dict(settings).items() if name not in unused}


async def _run_checks(settings: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    yield HealthFinding("ok", f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    yield await _check_daemon(settings.home)
    if settings.home.is_dir():
        yield _check_data_folder(settings.home)
    async for finding in _check_services(settings, verify=verify):
        yield finding
    for orphan in await asyncio.to_thread(find_orphans):
        yield describe_orphan(orphan, is_root=os.geteuid() == 0)


def _check_data_folder(home: Path) -> HealthFinding:
    """Return the finding on who can read the data folder."""
    reason = find_exposure(home)
    if reason is None:
        return HealthFinding("ok", f"only you can read the data folder {home}")
    if reason:
        hint = "Set NEWTON_DATA_DIR to a folder of your own, and move the files there."
        return HealthFinding("wrong", f"other users can read the data folder {home}: {reason}", hint)
    hint = f"The next start of Newton changes that; `chmod 700 {shlex.quote(str(home))}` does so now."
    return HealthFinding("wrong", f"other users can read the data folder {home}", hint)


async def _check_services(settings: Settings, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    """Yield the findings on database and models: those of the daemon and, if its settings differ, of this process."""
    daemon = find_daemon(settings.home) if settings.agent.isascii() else None
    if daemon is not None:
        async with daemon.open_client() as http:
            try:
                state = await read_state(DaemonRequests(http))
                yield _describe_daemon(state)
                http.headers |= {} if state["differing"] else {AGENT_HEADER: settings.agent}
                async for finding in _read_findings(DaemonRequests(http), verify=verify):
                    prefix = "finding of the daemon: " if state["differing"] else ""
                    yield replace(finding, detail=f"{prefix}{finding.detail}")
                if not state["differing"]:
                    return
            except NewtonError as error:
                yield HealthFinding("wrong", error.what, error.hint)
    own_checks = import_module("newton.runtime.cli.operations.own_checks")
    async for finding in own_checks.run_own_checks(settings, verify=verify):
        yield finding


def describe_orphan(orphan: OrphanedDatabase, *, is_root: bool) -> HealthFinding:
    """Return the finding on a database folder that no data folder names. Only root may delete it."""
    home = f"the data folder {orphan.home}"
    reason = f"{home} uses another database" if orphan.home.exists() else f"{home} does not exist"
    detail = f"{reason}, so nothing uses the database {orphan.folder} (files of the system user {orphan.owner})"
    if not is_root:
        return HealthFinding("note", detail, "Only root may delete it. You need not do anything.")
    if orphan.owner != SERVER_USER:
        hint = f"Other databases here belong to the user {SERVER_USER}: leave this one to the user {orphan.owner}."
        return HealthFinding("note", detail, hint)
    condition = "If the data folder is gone for good, not only on a disk that is not mounted now"
    if orphan.may_run:
        condition += f", and no server runs in it (see {orphan.folder}/postgres/postmaster.pid)"
    return HealthFinding("note", detail, f"{condition}, delete it as root: `rm -r {shlex.quote(str(orphan.folder))}`.")


def _describe_daemon(state: Any) -> HealthFinding:
    started = datetime.fromisoformat(state["started_at"])
    name = f"the daemon (process {state['process']}, since {started:%Y-%m-%d %H:%M})"
    if not state["differing"]:
        return HealthFinding("ok", f"{name} runs commands with the settings below, and made these checks")
    return HealthFinding(
        "note",
        f"{name} was started with another value of: {', '.join(state['differing'])}",
        "Commands run in their own process with the settings below. Restart the daemon with the same settings.",
    )


async def _read_findings(requests: DaemonRequests, *, verify: bool) -> AsyncGenerator[HealthFinding]:
    """Yield the findings of the daemon as it makes the checks."""
    async for line in requests.stream_lines("/v1/daemon/checks", {"verify": verify}):
        yield HealthFinding(**json_format.loads(line))


async def _check_daemon(home: Path) -> HealthFinding:
    """Return the finding on whether the daemon of a data folder answers.

    The daemon's certificate is not verified, because the request contains no secret.
    """
    address = daemon_address.read_address(home)
    if address is None:
        return HealthFinding("note", "no daemon uses this data folder", "`newton serve` starts a daemon.")
    name = f"the daemon at {address.url} (Newton {address.version})"
    try:
        async with httpx2.AsyncClient(timeout=DAEMON_TIMEOUT_SECONDS, verify=False, trust_env=False) as client:
            ready = (await client.get(f"{address.url}/health/ready")).status_code == HTTPStatus.OK
    except httpx2.TransportError:
        return HealthFinding(
            "note", f"{name} does not answer", "The daemon was killed or hangs. `newton serve` starts a new one."
        )
    if not ready:
        return HealthFinding(
            "wrong", f"{name} is not ready", "The daemon cannot reach its database; see the daemon's log."
        )
    if address.version != __version__:
        return HealthFinding(
            "note", f"{name} is ready, but this command is Newton {__version__}", "Restart the daemon."
        )
    return HealthFinding("ok", f"{name} is ready")
