"""Documents from disk into passages, one unit of work for each document."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.content.documents import Document, Found, documents_in, read_document
from newton.dialogue.condensing import USUAL, Sizes
from newton.errors import InputError
from newton.heart import documents
from newton.heart.chunking import Chunk, passages
from newton.heart.documents import Source, Taken
from newton.memory.hygiene import redacted
from newton.memory.memory import Trust

Progress = Callable[[Path], None]


@dataclass(slots=True)
class Report:
    """What taking documents in did. `refused` says of each file that could not be read why."""

    new: int = 0
    kept: int = 0
    replaced: int = 0
    documents: int = 0
    refused: list[InputError] = field(default_factory=list[InputError])

    def add(self, taken: Taken) -> None:
        self.new += taken.new
        self.kept += taken.kept
        self.replaced += taken.replaced
        self.documents += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """For one agent; `origin` names the door."""

    scope: AgentScope
    sizes: Sizes = USUAL

    async def found(self, path: Path, *, follow: bool = False) -> Found:
        """The documents that there are under a path, with `follow` by any link. Raises InputError when there is neither
        a document nor a link that was not followed."""
        found = await asyncio.to_thread(documents_in, path, follow=follow)
        if not any(found):
            raise InputError(f"{path} holds no document.", hint="Markdown, text, HTML and PDF are read.")
        return found

    async def take(self, paths: Sequence[Path], *, trust: Trust, progress: Progress = lambda path: None) -> Report:
        """Reads the documents and keeps what is new in them; one that cannot be read is refused, the rest goes in."""
        report = Report()
        for path in paths:
            try:
                document, chunks = await asyncio.to_thread(self._read, path)
            except InputError as error:
                report.refused.append(error)
            else:
                source = Source(ref=str(path.resolve()), title=redacted(document.title), format=document.format)
                async with self.scope.transaction() as tx:
                    taken = await documents.take(tx, source, chunks, ctx=self.scope.write_context(trust))
                    self._tell(taken)
                report.add(taken)
            progress(path)
        return report

    async def miss(self, folder: Path) -> list[str]:
        """Notes which documents were taken in from under a folder and are no longer there; returns their paths."""
        known = {document.ref: document for document in await self.listed() if document.passages}
        gone = [known[ref] for ref in await asyncio.to_thread(_gone, folder, list(known))]
        for document in gone:
            source = Source(ref=document.ref, title=document.title, format=document.format)
            async with self.scope.transaction() as tx:
                self._tell(await documents.take(tx, source, [], ctx=self.scope.write_context("user")))
        return [document.ref for document in gone]

    async def listed(self) -> list[documents.Known]:
        """Every document that was taken in."""
        async with self.scope.transaction() as tx:
            return await documents.listed(tx, agent_id=self.scope.agent_id)

    def _read(self, path: Path) -> tuple[Document, list[Chunk]]:
        if not _is_text(path):
            raise InputError(
                f"The name of {os.fsencode(path).decode(errors='replace')} is not UTF-8.", hint="Rename the file."
            )
        document = read_document(path)
        chunks = passages(
            document.sections, count=self.scope.count_tokens, size=self.sizes.chunk, overlap=self.sizes.overlap
        )
        return document, [
            chunk._replace(text=redacted(chunk.text), heading=redacted(chunk.heading)) for chunk in chunks
        ]

    def _tell(self, taken: Taken) -> None:
        if taken.new or taken.replaced:
            about = {"new": taken.new, "kept": taken.kept, "replaced": taken.replaced}
            self.scope.publish("document.taken", about)


def _gone(folder: Path, refs: Sequence[str]) -> list[str]:
    """Those that are paths under the folder at which there is nothing any more."""
    root = folder.resolve()
    paths = [Path(ref) for ref in refs if Path(ref).is_absolute() and Path(ref).is_relative_to(root)]
    return [str(path) for path in paths if not path.exists()]


def _is_text(path: Path) -> bool:
    """Whether its name can be kept: a file may be called by any bytes."""
    return str(path.resolve()).encode(errors="ignore").decode() == str(path.resolve())
