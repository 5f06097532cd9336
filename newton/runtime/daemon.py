"""The daemon: one process with the HTTP server, on TCP and a local socket, the job worker, and a graceful shutdown."""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from newton.client.environment import LOOPBACK_HOSTS
from newton.concurrency import task_group, with_timeout
from newton.db.pool import Database
from newton.errors import ConfigError, DatabaseError
from newton.runtime import daemon_address, daemon_socket
from newton.runtime.access import operator_token
from newton.runtime.access.browser_sessions import SignInGrant
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app, stop_turns, wait_for_turns
from newton.runtime.api.routes.dashboard import build_link_path
from newton.runtime.bootstrap import open_newton
from newton.runtime.daemon_state import DaemonState
from newton.runtime.dashboard.routes import mount_dashboard
from newton.runtime.jobs.job_settings import build_schedules
from newton.runtime.jobs.schedule import build_runner
from newton.runtime.jobs.worker import JobWorker
from newton.runtime.mcp.streamable_http import mount_mcp
from newton.runtime.model_directory import describe_replies_without_model
from newton.runtime.tracing import export_traces
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

# Seconds from the stop signal until replies are ended with an error, requests are cancelled, database connections are
# dropped, and the process exits.
REPLY_SECONDS, DRAIN_SECONDS, ABORT_SECONDS, EXIT_SECONDS = 5.0, 7, 8.0, 9.5
SERVER_OPTIONS: dict[str, Any] = {
    **{"log_config": None, "access_log": False, "lifespan": "off", "server_header": False},
    "timeout_graceful_shutdown": DRAIN_SECONDS,
}
BACKLOG = 512  # connections that wait to be accepted
REQUEST_HEAD_SECONDS = 10  # timeout for the head of a request
STALLED_READER_SECONDS = 20  # timeout for a client that reads nothing
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 15.0  # pauses between attempts to open the database


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """The listen address, the TLS files, and the host names that requests may use besides `host` and loopback."""

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    allowed_hosts: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """Return the host names, in lower case, that the `Host` header of a request may contain."""
        return LOOPBACK_HOSTS | {self.host.lower(), *(name.lower() for name in self.allowed_hosts)}

    def url(self, sock: socket.socket) -> str:
        """Return the URL of the bound socket, with the port that the system has assigned."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{sock.getsockname()[1]}"

    def validate(self) -> "ListenOptions":
        """Return these options unchanged if they are valid.

        Raises ConfigError for a public address without TLS or a proxy, and for a missing or invalid certificate or key.
        """
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS requires a certificate and its key.", hint="Give --tls-cert and --tls-key.")
        if self.host not in LOOPBACK_HOSTS and not self.certificate and not self.behind_proxy:
            raise ConfigError(
                f"{self.host} is reachable by other machines, and tokens would be sent unencrypted.",
                hint="Give --tls-cert and --tls-key, or --behind-proxy when a proxy in front of Newton terminates TLS.",
            )
        if self.certificate:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
            except OSError as error:  # includes ssl.SSLError
                raise ConfigError(
                    f"{self.certificate} and {self.key} are not a certificate and its key: {error.strerror or error}.",
                    hint="Give --tls-cert and --tls-key readable PEM files that belong together.",
                ) from None
        return self


class _TimeoutProtocol(H11Protocol):
    """An HTTP/1.1 protocol that disconnects clients that stop reading or do not complete a request head in time."""

    _stall_timer: asyncio.TimerHandle | None = None
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn has it
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(REQUEST_HEAD_SECONDS, transport.abort)

    def handle_events(self) -> None:
        super().handle_events()
        is_incomplete = self.conn.trailing_data[0] and not (self.cycle and not self.cycle.response_complete)
        if self._head_timer is not None and not is_incomplete:
            self._head_timer.cancel()
            self._head_timer = None
        elif self._head_timer is None and is_incomplete:
            self._head_timer = self.loop.call_later(REQUEST_HEAD_SECONDS, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(STALLED_READER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_stall_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_stall_timer()
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


class _OwnerProtocol(H11Protocol):
    """An HTTP/1.1 protocol that serves only processes of the user of this one, who may take any time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn has it
        super().connection_made(transport)
        # the transport's own socket object has no getsockopt
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as connection:
            if not daemon_socket.is_own_peer(connection):
                transport.abort()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerApp:
    """The ASGI application on the socket of the data folder, which only the user of the daemon can open.

    `local` runs commands. Requests to `api`, the HTTP API, get the operator's token.
    """

    api: ASGIApp
    local: ASGIApp
    operator_token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(daemon_socket.LOCAL_PREFIX):
            await self.local(scope, receive, send)
            return
        token = (b"authorization", f"Bearer {self.operator_token}".encode())
        await self.api({**scope, "headers": [token, *scope["headers"]]}, receive, send)


class UvicornServer(uvicorn.Server):
    """A uvicorn server without signal handlers, because the daemon handles the signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(
    state: DaemonState,
    listen: ListenOptions,
    *,
    on_message: Callable[[str], None] = lambda text: None,
    export_spans: bool = False,
    prints_link: bool = False,
    build_local_app: Callable[[AgentRegistry], ASGIApp],
) -> None:
    """Run the daemon until SIGTERM or SIGINT, then let requests finish and exit within ten seconds.

    `on_message` receives a sentence about each step. `export_spans` turns on tracing with OpenTelemetry. `prints_link`
    adds a message with a one-time link that signs a browser in to the dashboard as the operator. `build_local_app`
    returns the application that runs the commands of local callers.
    """
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # a lost database is reported by each request that needs it
    settings, bound, stop = state.settings, bind_socket(listen.validate()), _create_stop_event()
    token = operator_token.load_or_create_token(settings.home)  # before the secrets in files are read
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(export_traces(enabled=export_spans))
        newton = await _open_with_retry(stack, settings, stop, on_message)
        if newton is None:
            return
        agents, url = AgentRegistry(newton), listen.url(bound)
        app = mount_dashboard(create_app(agents, operator_token=token, hosts=listen.hosts, state=state))
        await stack.enter_async_context(mount_mcp(app))
        servers = {UvicornServer(build_uvicorn_config(app, listen)): bound}
        if own := _open_socket(stack, settings.home, url, on_message):
            servers[UvicornServer(_build_owner_config(app, build_local_app(agents)))] = own
        async with task_group() as tasks:
            listener = tasks.create_task(app.state.broadcaster.listen(newton.scope.db))
            serving = [tasks.create_task(server.serve(sockets=[one])) for server, one in servers.items()]
            tasks.create_task(
                JobWorker(newton.scope.db, build_runner(agents)).work(build_schedules(settings.jobs), stop)
            )
            on_message(f"Newton serves {url}. Operator token: {settings.home / operator_token.TOKEN_FILE}.")
            on_message(f"Chat model: {_describe_chat_model(newton)}. `newton doctor` checks it.")
            on_message(_describe_dashboard(app, url, prints_link=prints_link))
            await stop.wait()
            _schedule_aborts(app, newton.scope.db)
            on_message("Newton is shutting down.")
            listener.cancel()
            app.state.broadcaster.close()
            for server in servers:
                server.should_exit = True
            await asyncio.gather(*serving)
            await wait_for_turns(app, seconds=ABORT_SECONDS - DRAIN_SECONDS)


def _describe_dashboard(app: FastAPI, url: str, *, prints_link: bool) -> str:
    """Return a sentence with a one-time link that signs in as the operator, or with the command that prints one."""
    if not prints_link:
        return "Dashboard: `newton dashboard` prints a link."
    path = build_link_path(app.state.browser_sessions, SignInGrant(token=app.state.operator_token))
    return f"Dashboard: {url}{path} (opens once; `newton dashboard` prints another link)."


def _describe_chat_model(newton: AgentServices) -> str:
    """Return the name of the chat model. The model server is not asked, because it may start later."""
    model = newton.chat_model
    return model.name if model else f"none; {describe_replies_without_model(newton.settings)}"


def _open_socket(
    stack: AsyncExitStack, home: Path, url: str, on_message: Callable[[str], None]
) -> socket.socket | None:
    """Publish the URL and return the listening socket of the data folder, both until `stack` is closed.

    Return None, with a message, if another daemon serves the folder, or if the socket cannot be opened.
    """
    if not stack.enter_context(daemon_address.publish_address(home, url)):
        on_message(f"Another daemon serves {home}. Commands and hooks on this machine keep to that one.")
        return None
    try:
        return stack.enter_context(daemon_socket.listen(home))
    except daemon_socket.SocketUnavailableError as error:
        on_message(f"The daemon runs no commands of the CLI; each runs in its own process, because {error}.")
        return None


def _schedule_aborts(app: FastAPI, db: Database) -> None:
    """End the replies that still run after REPLY_SECONDS, and drop the database connections after ABORT_SECONDS."""
    loop = asyncio.get_running_loop()
    loop.call_later(REPLY_SECONDS, stop_turns, app)
    loop.call_later(ABORT_SECONDS, db.terminate)


def _create_stop_event() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _request_stop, stop)
    return stop


def _request_stop(stop: asyncio.Event) -> None:
    """Set `stop`, and start a timer that ends the process if the shutdown hangs, for example in a blocked thread."""
    if not stop.is_set():
        stop.set()
        timer = Timer(EXIT_SECONDS, os._exit, (1,))  # pyright: ignore[reportPrivateUsage]  # its documented use
        timer.daemon = True
        timer.start()


@asynccontextmanager
async def _cancel_on(stop: asyncio.Event) -> AsyncGenerator[None]:
    """Cancel the enclosed block when `stop` is set, and raise TimeoutError."""

    async def expire() -> None:
        await stop.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async with asyncio.timeout(None) as limit:
        watcher = asyncio.create_task(expire())
        try:
            yield
        finally:
            watcher.cancel()


async def _open_with_retry(
    stack: AsyncExitStack, settings: Settings, stop: asyncio.Event, on_message: Callable[[str], None]
) -> AgentServices | None:
    """Open the configured agent, retrying while the database does not answer. Return None if `stop` is set first."""
    pause = FIRST_RETRY_SECONDS
    while not stop.is_set():
        try:
            async with _cancel_on(stop):
                return await stack.enter_async_context(
                    open_newton(
                        settings,
                        long_running=True,
                        on_new_agent=lambda name: on_message(f"Created agent {name}."),
                        on_notice=on_message,
                    )
                )
        except TimeoutError:
            break
        except DatabaseError as error:
            on_message(f"{error.what} The daemon tries again in {pause:g} s.")
        with suppress(TimeoutError):
            await with_timeout(stop.wait(), seconds=pause)
        pause = min(2 * pause, MAX_RETRY_SECONDS)
    return None


def bind_socket(listen: ListenOptions) -> socket.socket:
    """Return a TCP socket that is bound and listens. Raises ConfigError if the address is invalid or in use."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        bound = socket.create_server((listen.host, listen.port), family=family, backlog=BACKLOG)
        # asyncio sets TCP_NODELAY only for sockets with an explicit protocol; without it responses are delayed by 40 ms
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except OverflowError:
        raise ConfigError(f"{listen.port} is not a port.", hint="Give --port a number from 0 to 65535.") from None
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {listen.host}:{listen.port}: {os.strerror(error.errno or 0)}.",
            hint="Stop the program that uses the port, such as another daemon, or give another --port.",
        ) from None


def _build_owner_config(app: FastAPI, local: ASGIApp) -> uvicorn.Config:
    owner_app = OwnerApp(api=app, local=local, operator_token=app.state.operator_token)
    return uvicorn.Config(owner_app, http=_OwnerProtocol, **SERVER_OPTIONS)


def build_uvicorn_config(app: ASGIApp, listen: ListenOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=listen.host,
        port=listen.port,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
        http=_TimeoutProtocol,
        proxy_headers=listen.behind_proxy,
        **SERVER_OPTIONS,
    )
