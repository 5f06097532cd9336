"""`newton serve`: the daemon."""

from pathlib import Path
from typing import Annotated

import uvloop
from cyclopts import Parameter

from newton.errors import NewtonError
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, settings
from newton.runtime.daemon import Listen
from newton.runtime.daemon import serve as served
from newton.runtime.logs import Format, configure, tell
from newton.runtime.statuses import OK, status_of


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8700,
    tls_cert: Annotated[Path | None, Parameter(help="A certificate, to be spoken to from elsewhere.")] = None,
    tls_key: Annotated[Path | None, Parameter(help="Its key.")] = None,
    behind_proxy: Annotated[
        bool, Parameter(negative=(), help="A proxy before Newton speaks TLS and says who calls.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        Parameter(negative=(), help="Another name under which it may be called, and its pages call it."),
    ] = None,
    log_format: Annotated[Format, Parameter(help="How the log on standard error is written.")] = "plain",
    traces: Annotated[
        bool, Parameter(negative=(), help="Send OpenTelemetry traces to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    agent: Agent = None,
) -> int:
    """Serve HTTP until it is told to stop.

    Example: newton serve --port 8700
    """
    configure(log_format)
    listen = Listen(
        host=host,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        behind_proxy=behind_proxy,
        also=tuple(allow_host or ()),
    )
    said = tell if log_format == "json" else show.notice
    try:
        # a fifth less of the processor for each request than the loop of the standard library
        uvloop.run(served(settings(agent), listen, tell=said, traces=traces))
    except NewtonError as error:
        if log_format == "plain":
            raise
        tell(f"{error.what} {error.hint}")
        return status_of(error.code).exit
    return OK
