"""What a trace is told of: names, ids and numbers, and nothing that anybody said. Nobody is told before `tell`."""

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Span

AttributeValue = str | int | float | bool


class SpanTracer(Protocol):
    """Who writes traces."""

    def start_current_span(self, name: str, headers: Mapping[str, str]) -> "AbstractContextManager[Span]":
        """A span that those begun in it belong to; `carried` are headers that may name a trace of the caller."""
        ...

    def start_detached_span(self, name: str) -> "Span":
        """A span that none belongs to."""
        ...


class SpanHandle:
    """A span while it lasts; without anybody who listens, nothing."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def set_attributes(self, **attributes: AttributeValue | None) -> None:
        """What became known of it. What is None is left out."""
        if self._span is not None:
            self._span.set_attributes(
                {f"newton.{name}": value for name, value in attributes.items() if value is not None}
            )

    def update_name(self, name: str) -> None:
        """What it turned out to be."""
        if self._span is not None:
            self._span.update_name(name)


_NO_SPAN = SpanHandle()
_tracers: list[SpanTracer] = []


def set_tracer(tracer: SpanTracer | None) -> None:
    """From now on spans are told to that listener of this process, or to nobody."""
    _tracers[:] = [tracer] if tracer else []


@contextmanager
def span(
    name: str, headers: Mapping[str, str] | None = None, **attributes: AttributeValue | None
) -> Generator[SpanHandle]:
    """What is begun within, in the same task, belongs to it. Of a failure its type is told, for its words may quote."""
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
    """The same for what may go on in another task than it was begun in, as a stream does; nothing belongs to it."""
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
