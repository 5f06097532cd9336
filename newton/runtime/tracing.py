"""Export of OpenTelemetry spans: the durations of requests, jobs, contexts and model calls."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from newton import __version__, telemetry
from newton.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

FLUSH_TIMEOUT_MS = 1_000  # for the last export at shutdown


class OtelSpanTracer:
    """A tracer that starts each span of Newton in OpenTelemetry."""

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer
        self._extract = import_module("opentelemetry.propagate").extract

    def start_current_span(self, name: str, headers: Mapping[str, str]) -> "AbstractContextManager[Span]":
        context = self._extract(headers) if headers else None
        # exception messages and tracebacks may quote user text
        return self._tracer.start_as_current_span(
            name, context=context, record_exception=False, set_status_on_exception=False
        )

    def start_detached_span(self, name: str) -> "Span":
        return self._tracer.start_span(name)


@asynccontextmanager
async def export_traces(*, enabled: bool) -> AsyncGenerator[None]:
    """Export spans by OTLP during the block, if `enabled`. The variables OTEL_* set the endpoint.

    Raises ConfigError if the packages of OpenTelemetry are not installed.
    """
    if not enabled:
        yield
        return
    try:
        sdk, export = (import_module(f"opentelemetry.sdk.{name}") for name in ("trace", "trace.export"))
        resources = import_module("opentelemetry.sdk.resources")
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError:
        install = f"{sys.executable} -m pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
        raise ConfigError("The packages of OpenTelemetry are not installed.", hint=f"Run `{install}`.") from None
    detected = resources.OTELResourceDetector().detect()  # OTEL_SERVICE_NAME overrides the name below
    provider = sdk.TracerProvider(resource=resources.Resource({"service.name": "newton"}).merge(detected))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    telemetry.set_tracer(OtelSpanTracer(provider.get_tracer("newton", __version__)))
    try:
        yield
    finally:
        telemetry.set_tracer(None)
        await asyncio.to_thread(provider.force_flush, FLUSH_TIMEOUT_MS)
