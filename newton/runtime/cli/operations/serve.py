"""`newton serve`: the daemon."""

from pathlib import Path
from typing import Annotated

import uvloop
from cyclopts import Parameter

from newton.errors import NewtonError
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.daemon import ListenOptions
from newton.runtime.daemon import serve as served
from newton.runtime.error_status import EXIT_OK, get_error_status
from newton.runtime.logs import LogFormat, configure, log_message


def serve_http(
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
    log_format: Annotated[LogFormat, Parameter(help="How the log on standard error is written.")] = "plain",
    traces: Annotated[
        bool, Parameter(negative=(), help="Send OpenTelemetry traces to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    agent: AgentOption = None,
) -> int:
    """Serve HTTP until it is told to stop.

    Example: newton serve --port 8700
    """
    configure(log_format)
    listen = ListenOptions(
        host=host,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=tuple(allow_host or ()),
    )
    said = log_message if log_format == "json" else formatting.print_notice
    try:
        # a fifth less of the processor for each request than the loop of the standard library
        uvloop.run(served(load_settings(agent), listen, on_message=said, export_spans=traces))
    except NewtonError as error:
        if log_format == "plain":
            raise
        log_message(f"{error.what} {error.hint}")
        return get_error_status(error.code).exit_code
    return EXIT_OK
