"""Tracing spans that carry names, ids and numbers but no user text. They do nothing until `set_tracer` is called."""

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Span

AttributeValue = str | int | float | bool


class SpanTracer(Protocol):
    """Interface of a tracing backend, which creates spans."""

    def start_current_span(self, name: str, headers: Mapping[str, str]) -> "AbstractContextManager[Span]":
        """Return a context manager that opens a span and makes it the current one, the parent of spans within.

        `headers` are HTTP headers, which may contain the caller's trace context.
        """
        ...

    def start_detached_span(self, name: str) -> "Span":
        """Start a span that never becomes the current one, so it has no child spans."""
        ...


class SpanHandle:
    """An open span. Its methods do nothing if no tracer is set."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        """Set attributes of the span, with the prefix `newton.`; None values are omitted."""
        if self._span is not None:
            present = {f"newton.{name}": value for name, value in attributes.items() if value is not None}
            self._span.set_attributes(present)

    def update_name(self, name: str) -> None:
        """Change the name of the span."""
        if self._span is not None:
            self._span.update_name(name)


_NO_SPAN = SpanHandle()
_tracers: list[SpanTracer] = []


def set_tracer(tracer: SpanTracer | None) -> None:
    """Set the tracer of this process; None disables tracing."""
    _tracers[:] = [tracer] if tracer else []


@contextmanager
def span(
    name: str, headers: Mapping[str, str] | None = None, **attributes: AttributeValue | None
) -> Generator[SpanHandle]:
    """Open a tracing span; spans opened within the block become its children.

    `headers` are HTTP headers, which may contain the caller's trace context. If the block raises, the span gets only
    the type of the error.
    """
    if not _tracers:
        yield _NO_SPAN
        return
    with _tracers[0].start_current_span(name, headers or {}) as otel_span, _with_error_type(otel_span) as handle:
        handle.set_attributes(**attributes)
        yield handle


@contextmanager
def detached_span(name: str, **attributes: AttributeValue | None) -> Generator[SpanHandle]:
    """Open a tracing span that has no child spans, for work that may continue in another task, such as a stream."""
    if not _tracers:
        yield _NO_SPAN
        return
    otel_span = _tracers[0].start_detached_span(name)
    try:
        with _with_error_type(otel_span) as handle:
            handle.set_attributes(**attributes)
            yield handle
    finally:
        otel_span.end()


@contextmanager
def _with_error_type(otel_span: "Span") -> Generator[SpanHandle]:
    handle, done = SpanHandle(otel_span), False
    try:
        yield handle
        done = True
    finally:
        if not done and (kind := sys.exc_info()[0]):
            handle.set_attributes(error=kind.__name__)
