"""Command `newton serve`: run the daemon."""

import ctypes
from pathlib import Path
from typing import Annotated

import uvloop
from cyclopts import Parameter

from newton.clock import SystemClock
from newton.errors import NewtonError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_server import CommandServer
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.daemon import ListenOptions, serve
from newton.runtime.daemon_state import DaemonState
from newton.runtime.error_status import EXIT_OK, get_error_status
from newton.runtime.logs import LogFormat, configure, log_message

# Numbers of the parameters in malloc.h of glibc, and their values.
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
LARGE_BYTES, ARENAS = 1024 * 1024, 2


def limit_fragmentation() -> None:
    """Let glibc return freed memory to the system; with another C library, do nothing.

    By default, each thread that allocates gets an arena (up to eight per core), and blocks up to 32 MiB are cut from an
    arena, which keeps them when they are freed. Call this before threads are started.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_ARENA_MAX, ARENAS)
        set_option(M_MMAP_THRESHOLD, LARGE_BYTES)


def serve_http(
    *,
    host: Annotated[str, Parameter(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on.")] = 8700,
    tls_cert: Annotated[
        Path | None, Parameter(help="File with the TLS certificate; required to serve clients on other machines.")
    ] = None,
    tls_key: Annotated[Path | None, Parameter(help="File with the private key of the certificate.")] = None,
    behind_proxy: Annotated[
        bool, Parameter(negative=(), help="Trust a reverse proxy that terminates TLS and forwards the client address.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Parameter(negative=(), help="Accept requests for this host name, and from web pages on it; repeatable."),
    ] = None,
    log_format: Annotated[LogFormat, Parameter(help="Format of the log on standard error.")] = "plain",
    traces: Annotated[
        bool, Parameter(negative=(), help="Export OpenTelemetry traces to OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = False,
    agent: AgentOption = None,
) -> int:
    """Run the daemon until SIGTERM or Ctrl-C: HTTP, MCP, the OpenAI protocol and scheduled jobs.

    Example: newton serve --port 8700
    """
    configure(log_format)
    limit_fragmentation()
    listen = ListenOptions(
        host=host,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=tuple(allow_host or ()),
    )
    on_message = log_message if log_format == "json" else formatting.print_notice
    try:
        # uvloop needs a fifth less CPU time per request than the standard event loop
        state = DaemonState.capture(load_settings(agent), now=SystemClock().now())
        uvloop.run(
            serve(
                state,
                listen,
                on_message=on_message,
                export_spans=traces,
                prints_link=log_format == "plain",  # a log that is collected must not contain it
                build_local_app=lambda agents: CommandServer(agents=agents, state=state),
            )
        )
    except NewtonError as error:
        if log_format == "plain":
            raise
        log_message(f"{error.what} {error.hint}")
        return get_error_status(error.code).exit_code
    return EXIT_OK
