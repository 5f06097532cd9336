"""Tracing: names, ids and numbers, never user text. Spans are discarded until `set_tracer`."""

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Span

AttributeValue = str | int | float | bool


class SpanTracer(Protocol):
    """The interface of a tracing backend."""

    def start_current_span(self, name: str, headers: Mapping[str, str]) -> "AbstractContextManager[Span]":
        """Start a span as the parent of those within; `headers` may carry the caller's trace context."""
        ...

    def start_detached_span(self, name: str) -> "Span":
        """Start a span that is the parent of none."""
        ...


class SpanHandle:
    """An open span; a no-op without a tracer."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        """Set attributes of the span, except those that are None."""
        if self._span is not None:
            self._span.set_attributes(
                {f"newton.{name}": value for name, value in attributes.items() if value is not None}
            )

    def update_name(self, name: str) -> None:
        """Rename the span."""
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
    """Open a span as the parent of those within the task. Only the type of an exception is recorded: its text may quote
    user text."""
    if not _tracers:
        yield _NO_SPAN
        return
    with _tracers[0].start_current_span(name, headers or {}) as begun:
        noting = SpanHandle(begun)
        with _record_error_type(noting):
            noting.set_attributes(**attributes)
            yield noting


@contextmanager
def detached_span(name: str, **attributes: AttributeValue | None) -> Generator[SpanHandle]:
    """Open a span that is the parent of none and may end in another task, as a stream does."""
    if not _tracers:
        yield _NO_SPAN
        return
    begun = _tracers[0].start_detached_span(name)
    noting = SpanHandle(begun)
    try:
        with _record_error_type(noting):
            noting.set_attributes(**attributes)
            yield noting
    finally:
        begun.end()


@contextmanager
def _record_error_type(handle: SpanHandle) -> Generator[None]:
    done = False
    try:
        yield
        done = True
    finally:
        if not done and (kind := sys.exc_info()[0]):
            handle.set_attributes(error=kind.__name__)
