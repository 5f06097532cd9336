"""Import speed compared with the embedder alone on the same texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from newton.clock import monotonic_ms
from newton.errors import ProviderError
from newton.runtime.transfer.importer import ImportReport
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


class RecordingEmbedder:
    """An Embedder that records its calls, so that they can be repeated alone."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self.calls: list[Sequence[str]] = []

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        self.calls.append(texts)
        return await self._embedder.embed(texts)


@dataclass(slots=True)
class ImportSpeed:
    """Numbers of imported lines and embedded texts, with their milliseconds."""

    lines: int = 0
    import_ms: float = 0.0
    texts: int = 0
    embed_ms: float = 0.0

    def as_json(self) -> dict[str, float | None]:
        imported, embedded = _per_second(self.lines, self.import_ms), _per_second(self.texts, self.embed_ms)
        ratio = round(imported / embedded, 3) if imported and embedded else None
        return {"import_per_s": imported, "embed_per_s": embedded, "import_to_embed": ratio}


async def time_import(
    newton: AgentServices, path: Path, speed: ImportSpeed, *, progress: Callable[[int], None]
) -> ImportReport:
    """Import a file, then repeat its embedding calls alone. Raises ProviderError when the embedder fails."""
    embedder, recorder = newton.scope.embedder, None
    if embedder:
        await embedder.embed(["Good morning!"])  # the first call of a process is slower than later ones
        recorder = RecordingEmbedder(embedder)
    importer = replace(newton, scope=replace(newton.scope, embedder=recorder)).importer()
    started = monotonic_ms()
    report = await importer.run(path, progress=progress)
    speed.import_ms += monotonic_ms() - started
    speed.lines += report.new
    if report.embedder_error:
        raise ProviderError(report.embedder_error, hint="Fix the cause, or use NEWTON_EMBEDDING=none.")
    if embedder and recorder:
        started = monotonic_ms()
        for texts in recorder.calls:
            await embedder.embed(texts)
        speed.embed_ms += monotonic_ms() - started
        speed.texts += sum(len(texts) for texts in recorder.calls)
    return report


def _per_second(count: int, ms: float) -> float | None:
    return round(count * 1_000 / ms, 1) if count else None
