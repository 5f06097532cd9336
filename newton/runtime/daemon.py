"""One process that lives for long: the doors, the work that is due, and an orderly end."""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from newton.concurrency import together, within
from newton.errors import ConfigError, DatabaseError
from newton.runtime.access import operator
from newton.runtime.api.app import create
from newton.runtime.mcp.streamable import mounted
from newton.runtime.minds import Minds
from newton.runtime.wiring import Newton, opened
from newton.settings import Settings

DRAIN_SECONDS = 8
BACKLOG = 512
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0  # seconds between tries to reach the database
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where the daemon is spoken to. Beyond loopback only with TLS, or behind a proxy that has it."""

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

    def url(self, door: socket.socket) -> str:
        """Where it is reached; with port 0 the system has chosen one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{door.getsockname()[1]}"

    def checked(self) -> "Listen":
        """Itself. Raises ConfigError for an address that others reach unencrypted, and for half a certificate."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("TLS wants a certificate and its key.", hint="Give --tls-cert and --tls-key.")
        if self.host not in LOOPBACK and not self.certificate and not self.behind_proxy:
            raise ConfigError(
                f"Others reach {self.host}, and tokens would go there unencrypted.",
                hint="Give --tls-cert and --tls-key, or --behind-proxy when a proxy before Newton speaks TLS.",
            )
        return self


class _Server(uvicorn.Server):
    """Leaves signals to the daemon."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(settings: Settings, listen: Listen, *, tell: Callable[[str], None] = lambda said: None) -> None:
    """Serves until SIGTERM or SIGINT; then takes no new work, ends what it has, and leaves within ten seconds. `tell`
    hears of where it serves and of its end."""
    listen.checked()
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # a lost database is said to whoever asks for it
    token, door = operator.token_of(settings.home), _door(listen)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        newton = await _opened(stack, settings, stop, tell)
        if newton is None:
            return
        app = create(Minds(newton), operator_token=token)
        await stack.enter_async_context(mounted(app, [listen.host], any_host=listen.behind_proxy))
        server = _Server(_config(app, listen))
        async with together() as tasks:
            serving = tasks.create_task(server.serve(sockets=[door]))
            tell(f"Newton serves {listen.url(door)}. The operator's token is in {settings.home / operator.FILE}.")
            await stop.wait()
            tell("Newton ends what it has begun, and leaves.")
            server.should_exit = True
            await serving


async def _opened(
    stack: AsyncExitStack, settings: Settings, stop: asyncio.Event, tell: Callable[[str], None]
) -> Newton | None:
    """Newton, as soon as its database answers; None when it is told to stop before that."""
    pause = FIRST_PAUSE
    while not stop.is_set():
        try:
            return await stack.enter_async_context(opened(settings, for_long=True))
        except DatabaseError as error:
            tell(f"{error.what} Trying again in {pause:g} s.")
        with suppress(TimeoutError):
            await within(stop.wait(), seconds=pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return None


def _door(listen: Listen) -> socket.socket:
    """The socket, taken before anything else is begun. Raises ConfigError when it cannot be had."""
    try:
        return socket.create_server((listen.host, listen.port), family=_family(listen.host), backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"Nothing can be served on {listen.host}:{listen.port}: {os.strerror(error.errno or 0)}.",
            hint="Another daemon may run there; stop it, or give another --port.",
        ) from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _config(app: object, listen: Listen) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType]  # an ASGI application of another package's type
        host=listen.host,
        port=listen.port,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=listen.behind_proxy,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
