"""What a trace is told of: names, ids and numbers, and nothing that anybody said. Nobody is told before `tell`."""

import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Noted = str | int | float | bool


class Listener(Protocol):
    """Who writes traces."""

    def within(self, name: str, carried: Mapping[str, str]) -> "AbstractContextManager[Span]":
        """A span that those begun in it belong to; `carried` are headers that may name a trace of the caller."""
        ...

    def beside(self, name: str) -> "Span":
        """A span that none belongs to."""
        ...


class Noting:
    """A span while it lasts; without anybody who listens, nothing."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def note(self, **known: Noted | None) -> None:
        """What became known of it. What is None is left out."""
        if self._span is not None:
            self._span.set_attributes({f"newton.{name}": value for name, value in known.items() if value is not None})

    def name(self, name: str) -> None:
        """What it turned out to be."""
        if self._span is not None:
            self._span.update_name(name)


_SILENT = Noting()
_listening: list[Listener] = []


def tell(listener: Listener | None) -> None:
    """From now on spans are told to that listener of this process, or to nobody."""
    _listening[:] = [listener] if listener else []


@contextmanager
def span(name: str, carried: Mapping[str, str] | None = None, **known: Noted | None) -> Generator[Noting]:
    """What is begun within, in the same task, belongs to it. Of a failure its type is told, for its words may quote."""
    if not _listening:
        yield _SILENT
        return
    with _listening[0].within(name, carried or {}) as begun:
        noting = Noting(begun)
        with _failing(noting):
            noting.note(**known)
            yield noting


@contextmanager
def leaf(name: str, **known: Noted | None) -> Generator[Noting]:
    """The same for what may go on in another task than it was begun in, as a stream does; nothing belongs to it."""
    if not _listening:
        yield _SILENT
        return
    begun = _listening[0].beside(name)
    noting = Noting(begun)
    try:
        with _failing(noting):
            noting.note(**known)
            yield noting
    finally:
        begun.end()


@contextmanager
def _failing(noting: Noting) -> Generator[None]:
    done = False
    try:
        yield
        done = True
    finally:
        if not done and (kind := sys.exc_info()[0]):
            noting.note(error=kind.__name__)
