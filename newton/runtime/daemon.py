"""One process that lives for long: the doors, the work that is due, and an orderly end."""

import asyncio
import signal
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from newton.concurrency import together
from newton.errors import ConfigError
from newton.runtime.access import operator
from newton.runtime.api.app import create
from newton.runtime.jobs.catalogue import SCHEDULES, running
from newton.runtime.jobs.work import Worker
from newton.runtime.minds import Minds
from newton.runtime.wiring import opened
from newton.settings import Settings

DRAIN_SECONDS = 8
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where the daemon is spoken to. Beyond loopback only with TLS, or behind a proxy that has it."""

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

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


async def serve(settings: Settings, listen: Listen) -> None:
    """Serves until SIGTERM or SIGINT; then takes no new work, ends what it has, and leaves within ten seconds."""
    listen.checked()
    token = operator.token_of(settings.home)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with opened(settings) as newton:
        minds = Minds(newton)
        server = _Server(_config(create(minds, operator_token=token), listen))
        worker = Worker(newton.db, running(minds))
        async with together() as tasks:
            serving = tasks.create_task(server.serve())
            tasks.create_task(worker.work(SCHEDULES, stop))
            await stop.wait()
            server.should_exit = True
            await serving


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
