"""Ingestion of documents from disk into passages, one transaction per document."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.content.documents import DocumentPaths, LoadedDocument, list_documents, read_document
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import InputError
from newton.heart import documents
from newton.heart.chunking import TextChunk, split_passages
from newton.heart.documents import DocumentSource, IngestResult
from newton.memory.hygiene import redact_secrets
from newton.memory.memory import Trust

FileCallback = Callable[[Path], None]


@dataclass(slots=True)
class IngestReport:
    """The result of an ingestion. `refused` maps unreadable files to reasons."""

    new: int = 0
    kept: int = 0
    replaced: int = 0
    documents: int = 0
    refused: list[InputError] = field(default_factory=list[InputError])

    def add(self, result: IngestResult) -> None:
        self.new += result.new
        self.kept += result.kept
        self.replaced += result.replaced
        self.documents += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestService:
    """Document ingestion for one agent."""

    scope: AgentScope
    sizes: SummarySizes = DEFAULT_SIZES

    async def find_documents(self, path: Path, *, follow: bool = False) -> DocumentPaths:
        """Return the documents under a path; `follow` follows symbolic links.

        Raises InputError when there are no documents and no links that were skipped.
        """
        found = await asyncio.to_thread(list_documents, path, follow=follow)
        if not any(found):
            raise InputError(
                f"{path} contains no documents.", hint="Supported formats are Markdown, text, HTML and PDF."
            )
        return found

    async def ingest(
        self, paths: Sequence[Path], *, trust: Trust, progress: FileCallback = lambda path: None
    ) -> IngestReport:
        """Ingest new or changed documents; unreadable ones are reported and skipped."""
        report = IngestReport()
        for path in paths:
            try:
                document, chunks = await asyncio.to_thread(self._read_document, path)
            except InputError as error:
                report.refused.append(error)
            else:
                source = DocumentSource(
                    ref=str(path.resolve()), title=redact_secrets(document.title), format=document.format
                )
                async with self.scope.transaction() as tx:
                    taken = await documents.replace_passages(tx, source, chunks, ctx=self.scope.write_context(trust))
                    self._publish(taken)
                report.add(taken)
            progress(path)
        return report

    async def mark_missing(self, folder: Path) -> list[str]:
        """Mark ingested documents under `folder` that no longer exist; return their paths."""
        known = {document.ref: document for document in await self.list_documents() if document.passages}
        gone = [known[ref] for ref in await asyncio.to_thread(_missing_refs, folder, list(known))]
        for document in gone:
            source = DocumentSource(ref=document.ref, title=document.title, format=document.format)
            async with self.scope.transaction() as tx:
                self._publish(await documents.replace_passages(tx, source, [], ctx=self.scope.write_context("user")))
        return [document.ref for document in gone]

    async def list_documents(self) -> list[documents.DocumentSummary]:
        """Return every ingested document."""
        async with self.scope.transaction() as tx:
            return await documents.list_documents(tx, agent_id=self.scope.agent_id)

    def _read_document(self, path: Path) -> tuple[LoadedDocument, list[TextChunk]]:
        if not _has_utf8_name(path):
            raise InputError(
                f"The name of {os.fsencode(path).decode(errors='replace')} is not UTF-8.", hint="Rename the file."
            )
        document = read_document(path)
        chunks = split_passages(
            document.sections,
            count_tokens=self.scope.count_tokens,
            size=self.sizes.chunk_tokens,
            overlap=self.sizes.overlap_tokens,
        )
        return document, [
            chunk._replace(text=redact_secrets(chunk.text), heading=redact_secrets(chunk.heading)) for chunk in chunks
        ]

    def _publish(self, result: IngestResult) -> None:
        if result.new or result.replaced:
            about = {"new": result.new, "kept": result.kept, "replaced": result.replaced}
            self.scope.publish("document.ingested", about)


def _missing_refs(folder: Path, refs: Sequence[str]) -> list[str]:
    """Return the refs under the folder whose file does not exist."""
    root = folder.resolve()
    paths = [Path(ref) for ref in refs if Path(ref).is_absolute() and Path(ref).is_relative_to(root)]
    return [str(path) for path in paths if not path.exists()]


def _has_utf8_name(path: Path) -> bool:
    """Return whether the file name is valid UTF-8; the file system allows any bytes."""
    return str(path.resolve()).encode(errors="ignore").decode() == str(path.resolve())
