"""How fast an import is beside its embedder alone, on the very same texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from newton.clock import stopwatch
from newton.errors import ProviderError
from newton.runtime.transfer.importing import Report
from newton.runtime.wiring import Newton

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


class Overheard:
    """An embedder that keeps what it is asked, so that the same can be asked again with nothing around it."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self.calls: list[Sequence[str]] = []

    @property
    def identity(self) -> str:
        return self._embedder.identity

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        self.calls.append(texts)
        return await self._embedder.embed(texts)


@dataclass(slots=True)
class Pace:
    """Lines imported and texts embedded, and the milliseconds that took."""

    lines: int = 0
    lines_ms: float = 0.0
    texts: int = 0
    texts_ms: float = 0.0

    def as_json(self) -> dict[str, float | None]:
        imported, embedded = _per_second(self.lines, self.lines_ms), _per_second(self.texts, self.texts_ms)
        ratio = round(imported / embedded, 3) if imported and embedded else None
        return {"import_per_s": imported, "embed_per_s": embedded, "import_to_embed": ratio}


async def timed_import(newton: Newton, path: Path, pace: Pace, *, step: Callable[[int], None]) -> Report:
    """Imports, and right after it embeds the very same calls alone, so that a busy machine slows both alike.

    Raises ProviderError when there are no vectors to be had: such a run says nothing.
    """
    overheard = await _warm(newton.scope.embedder) if newton.scope.embedder else None
    started = stopwatch()
    report = await replace(newton, scope=replace(newton.scope, embedder=overheard)).importer().run(path, progress=step)
    pace.lines_ms += stopwatch() - started
    pace.lines += report.new
    if report.down:
        raise ProviderError(report.down, hint="Mend that, or measure with NEWTON_EMBEDDING=none.")
    if newton.scope.embedder and overheard:
        await _embed_again(newton.scope.embedder, overheard.calls, pace)
    return report


async def _warm(embedder: "Embedder") -> Overheard:
    """The first call of a process is slower than any other."""
    await embedder.embed(["Good morning!"])
    return Overheard(embedder)


async def _embed_again(embedder: "Embedder", calls: Sequence[Sequence[str]], pace: Pace) -> None:
    started = stopwatch()
    for texts in calls:
        await embedder.embed(texts)
    pace.texts_ms += stopwatch() - started
    pace.texts += sum(len(texts) for texts in calls)


def _per_second(number: int, ms: float) -> float | None:
    return round(number * 1_000 / ms, 1) if number else None
