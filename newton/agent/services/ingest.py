"""Ingestion of documents: files are split into passages and stored, one transaction for each document."""

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
from newton.memory.hygiene import count_redactions, redact_secrets
from newton.memory.memory import Trust

FileCallback = Callable[[Path], None]


@dataclass(slots=True)
class IngestReport:
    """The counts of documents and of new, unchanged and replaced passages, and the errors of files that were skipped.

    `redacted` is the number of passages from which secrets were removed.
    """

    new: int = 0
    kept: int = 0
    replaced: int = 0
    documents: int = 0
    redacted: int = 0
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
        """Return the documents under a path, and the symbolic links that were skipped (none with `follow`).

        Raises InputError if there are neither documents nor links.
        """
        found = await asyncio.to_thread(list_documents, path, follow=follow)
        if not any(found):
            hint = "Supported formats are Markdown, text, HTML and PDF."
            raise InputError(f"{path} contains no documents.", hint=hint)
        return found

    async def ingest(
        self, paths: Sequence[Path], *, trust: Trust, progress: FileCallback = lambda path: None
    ) -> IngestReport:
        """Store new or changed documents, each in its own transaction; skip unreadable files and list them in the
        report.

        `progress` is called after each file.
        """
        report = IngestReport()
        for path in paths:
            try:
                document, chunks = await asyncio.to_thread(self._read_document, path)
            except InputError as error:
                report.refused.append(error)
            else:
                title = redact_secrets(document.title)
                source = DocumentSource(ref=str(path.resolve()), title=title, format=document.format)
                report.add(await self._store_passages(source, chunks, trust))
                report.redacted += sum(1 for chunk in chunks if count_redactions(chunk.text, chunk.heading))
            progress(path)
        return report

    async def mark_missing(self, folder: Path) -> list[str]:
        """Remove the passages of ingested documents under `folder` whose files no longer exist; return their paths."""
        known = {document.ref: document for document in await self.list_documents() if document.passages}
        missing = await asyncio.to_thread(_missing_refs, folder, list(known))
        for ref in missing:
            source = DocumentSource(ref=ref, title=known[ref].title, format=known[ref].format)
            await self._store_passages(source, [], "user")
        return missing

    async def list_documents(self) -> list[documents.DocumentSummary]:
        """Return all ingested documents."""
        async with self.scope.transaction() as tx:
            return await documents.list_documents(tx, agent_id=self.scope.agent_id)

    def _read_document(self, path: Path) -> tuple[LoadedDocument, list[TextChunk]]:
        if not _has_utf8_name(path):
            name = os.fsencode(path).decode(errors="replace")
            raise InputError(f"The name of the file {name} is not valid UTF-8.", hint="Rename the file.")
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

    async def _store_passages(self, source: DocumentSource, chunks: Sequence[TextChunk], trust: Trust) -> IngestResult:
        async with self.scope.write(trust) as (tx, ctx):
            result = await documents.replace_passages(tx, source, chunks, ctx=ctx)
            if result.new or result.replaced:
                payload = {"new": result.new, "kept": result.kept, "replaced": result.replaced}
                self.scope.publish("document.ingested", payload)
            return result


def _missing_refs(folder: Path, refs: Sequence[str]) -> list[str]:
    """Return the refs that are paths under `folder` at which no file exists."""
    root = folder.resolve()
    paths = [Path(ref) for ref in refs if Path(ref).is_absolute() and Path(ref).is_relative_to(root)]
    return [str(path) for path in paths if not path.exists()]


def _has_utf8_name(path: Path) -> bool:
    """Return whether the path is valid UTF-8, because the file system allows any bytes."""
    return str(path.resolve()).encode(errors="ignore").decode() == str(path.resolve())
