"""Ingestion of documents: they are split into passages and stored, one transaction for each document."""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.content import sandbox
from newton.content.document_folders import FoundDocuments, PathTest, find_documents, is_never_secret
from newton.content.documents import DocumentBytes, DocumentError, LoadedDocument, identify, load_bytes, parse_document
from newton.content.file_formats import check_encoding
from newton.content.sections import DocumentSection
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import ForbiddenError, InputError
from newton.heart import documents
from newton.heart.chunking import TextChunk, split_passages
from newton.heart.documents import DocumentSource, IngestResult
from newton.memory.memory import Trust
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.redaction.tally import Redactions, add_redactions, count_redactions

FileCallback = Callable[[Path], None]

# Part of the hash of a file that is not read again. Raise it when a parser or the chunking changes its result.
PARSING_EDITION = 1
ASSUMED_ENCODINGS = ("utf-8", "utf-8-sig")  # of which a report says nothing


class IngestStoppedError(Exception):
    """Error of the reading of a document that is no longer wanted."""


@dataclass(slots=True)
class IngestReport:
    """The counts of documents and of new, unchanged and replaced passages, and the errors of files that were skipped.

    `unread` is the number of documents whose files have not changed, and `redacted` counts the removed secrets
    by kind. `encodings` counts the documents by each encoding other than UTF-8 that was detected.
    `stopped_at` is the document at which the ingestion was stopped; None if it was completed.
    """

    new: int = 0
    kept: int = 0
    replaced: int = 0
    documents: int = 0
    unread: int = 0
    redacted: Redactions = field(default_factory=dict[str, int])
    refused: list[DocumentError] = field(default_factory=list[DocumentError])
    encodings: Counter[str] = field(default_factory=Counter[str])
    stopped_at: Path | None = None

    def add(self, result: IngestResult) -> None:
        self.new += result.new
        self.kept += result.kept
        self.replaced += result.replaced
        self.documents += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document with its passages; `source` identifies it and its content."""

    source: DocumentSource
    loaded: LoadedDocument
    chunks: Sequence[TextChunk]

    @property
    def text(self) -> str:
        """Return the title and the text of all passages."""
        return "\n".join((self.source.title, *(chunk.text for chunk in self.chunks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadResult:
    """A document that was stored from its content, with the counts of its passages.

    `redacted` counts the removed secrets by kind.
    """

    document_id: UUID
    ref: str
    format: str
    encoding: str | None
    counts: IngestResult
    redacted: Redactions


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestService:
    """Reads documents, splits them into passages and stores these, for one agent.

    Files of which `is_secret` returns true, because they have secrets of Newton, are passed over.
    """

    scope: AgentScope
    sizes: SummarySizes = DEFAULT_SIZES
    is_secret: PathTest = is_never_secret

    async def find_documents(self, path: Path, *, follow: bool = False) -> FoundDocuments:
        """Return the documents under a path, and the files that are passed over.

        Raises InputError if there are neither.
        """
        found = await asyncio.to_thread(find_documents, path, follow=follow, is_secret=self.is_secret)
        if not found.documents and not found.skipped:
            raise InputError(f"{path} contains no documents.", hint="Give a folder that contains documents.")
        return found

    async def ingest(
        self,
        paths: Sequence[Path],
        *,
        trust: Trust,
        encoding: str | None = None,
        progress: FileCallback = lambda path: None,
        stop: asyncio.Event | None = None,
    ) -> IngestReport:
        """Store new or changed documents, each in its own transaction; the report lists unreadable files.

        `encoding` is that of all texts; None detects it. `progress` is called after each file. Once `stop` is set, the
        document that is being read is left out, and the report names it.
        """
        report, stop = IngestReport(), stop or asyncio.Event()
        for path in paths:
            try:
                await self._ingest_file(path, report, trust, encoding, stop)
            except DocumentError as error:
                report.refused.append(error)
            except ForbiddenError as error:
                report.refused.append(DocumentError(str(path), error.what, hint=error.hint))
            except IngestStoppedError:
                report.stopped_at = path
                break
            progress(path)
        return report

    async def read_upload(
        self,
        raw: bytes,
        *,
        name: str,
        ref: str | None = None,
        title: str | None = None,
        encoding: str | None = None,
    ) -> ReadDocument:
        """Read a document from its content. `name` is its file name, which says its format.

        `ref` identifies the document when it is stored again; None takes the name. Raises DocumentError if the
        content cannot be read, and InputError for an unknown encoding.
        """
        encoding = None if encoding is None else check_encoding(encoding)
        document = await asyncio.to_thread(identify, PurePath(name), raw)
        return await asyncio.to_thread(self._parse, document, ref or name, title, encoding, asyncio.Event())

    async def store_upload(self, read: ReadDocument, *, trust: Trust) -> UploadResult:
        """Store a document that `read_upload` returned."""
        counts = await self._store_passages(read.source, read.chunks, trust)
        async with self.scope.transaction() as tx:
            stored = await documents.find_document_id(tx, read.source.ref, agent_id=self.scope.agent_id)
        return UploadResult(
            document_id=stored,
            ref=read.source.ref,
            format=read.source.format,
            encoding=read.loaded.encoding,
            counts=counts,
            redacted=count_redacted(read),
        )

    async def mark_missing(self, folder: Path) -> list[str]:
        """Remove the passages of documents under `folder` whose files no longer exist; return their paths."""
        known = {document.ref: document for document in await self.list_documents() if document.passages}
        missing = await asyncio.to_thread(_missing_refs, folder, list(known))
        for ref in missing:
            source = DocumentSource(
                ref=ref, title=known[ref].title, format=known[ref].format, dated_at=known[ref].dated_at
            )
            await self._store_passages(source, [], "user")
        return missing

    async def list_documents(self) -> list[documents.DocumentSummary]:
        """Return all ingested documents."""
        async with self.scope.transaction() as tx:
            return await documents.list_documents(tx, agent_id=self.scope.agent_id)

    async def _ingest_file(
        self, path: Path, report: IngestReport, trust: Trust, encoding: str | None, stop: asyncio.Event
    ) -> None:
        """Store one file. Raises DocumentError if it cannot be read, and IngestStoppedError once `stop` is set."""
        if stop.is_set():
            raise IngestStoppedError
        document, unread = await asyncio.to_thread(self._load_file, path, encoding)
        async with self.scope.write(trust) as (tx, ctx):
            unchanged = await documents.count_unchanged(tx, unread, ctx=ctx)
        if unchanged is not None:
            report.add(IngestResult(0, unchanged, 0))
            report.unread += 1
            return
        read = await _run_until_stopped(lambda: self._parse(document, unread.ref, None, encoding, stop), stop)
        report.add(await self._store_passages(read.source, read.chunks, trust))
        report.redacted = add_redactions(report.redacted, count_redacted(read))
        if read.loaded.encoding not in (None, encoding, *ASSUMED_ENCODINGS):
            report.encodings[str(read.loaded.encoding)] += 1

    def _load_file(self, path: Path, encoding: str | None) -> tuple[DocumentBytes, DocumentSource]:
        """Read a file without parsing it. Raises DocumentError if it cannot be read, or its name is not UTF-8."""
        ref = str(path.resolve())
        if ref.encode(errors="ignore").decode() != ref:  # the file system allows any bytes
            name = os.fsencode(path).decode(errors="replace")
            raise DocumentError(name, "the name of the file is not valid UTF-8.", hint="Rename the file.")
        document = load_bytes(path)
        source_hash = self._hash_source(document, encoding)
        return document, DocumentSource(ref=ref, title=path.name, format=document.format, source_hash=source_hash)

    def _parse(
        self, document: DocumentBytes, ref: str, title: str | None, encoding: str | None, stop: asyncio.Event
    ) -> ReadDocument:
        """Parse a document, remove secrets, and split its text into passages. Runs in a thread; `stop` ends it."""
        loaded = parse_document(document, encoding=encoding)

        def count_tokens(text: str) -> int:
            if stop.is_set():  # a thread cannot be cancelled
                raise IngestStoppedError
            return self.scope.count_tokens(text)

        # before the text is split: a passage could begin within a secret
        sections = [_redact(section) for section in loaded.sections]
        chunks = split_passages(
            sections,
            count_tokens=count_tokens,
            size=self.sizes.chunk_tokens,
            overlap=self.sizes.overlap_tokens,
        )
        source = DocumentSource(
            ref=ref,
            title=redact_secrets(title or loaded.title),
            format=loaded.format,
            source_hash=self._hash_source(document, encoding),
            dated_at=loaded.date,
        )
        return ReadDocument(source=source, loaded=loaded, chunks=chunks)

    def _hash_source(self, document: DocumentBytes, encoding: str | None) -> bytes:
        sizes = f"{self.sizes.chunk_tokens} {self.sizes.overlap_tokens}"
        how = f"{PARSING_EDITION} {sizes} {encoding or ''} {document.name.name}\n"
        return hashlib.sha256(how.encode(errors="surrogateescape") + document.raw).digest()

    async def _store_passages(self, source: DocumentSource, chunks: Sequence[TextChunk], trust: Trust) -> IngestResult:
        await self.scope.reserve_storage(*(chunk.text for chunk in chunks))
        async with self.scope.write(trust) as (tx, ctx):
            result = await documents.replace_passages(tx, source, chunks, ctx=ctx)
            if result.new or result.replaced:
                payload = {"new": result.new, "kept": result.kept, "replaced": result.replaced}
                self.scope.publish("document.ingested", payload)
            return result


def count_redacted(read: ReadDocument) -> Redactions:
    """Return the number of secrets, by kind, that were removed from the title and the passages of a document."""
    texts = (text for chunk in read.chunks for text in (chunk.text, chunk.heading, chunk.location))
    return count_redactions(read.source.title, *texts)


async def _run_until_stopped(read: Callable[[], ReadDocument], stop: asyncio.Event) -> ReadDocument:
    """Run `read` in a thread. Raises its errors, and IngestStoppedError as soon as `stop` is set."""
    reading = asyncio.ensure_future(asyncio.to_thread(read))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            await asyncio.to_thread(sandbox.stop_parsers)
        return await reading
    except sandbox.ParserStoppedError:
        raise IngestStoppedError from None
    finally:
        stopping.cancel()


def _redact(section: DocumentSection) -> DocumentSection:
    return section._replace(
        heading=redact_secrets(section.heading),
        paragraphs=tuple(map(redact_secrets, section.paragraphs)),
        place=redact_secrets(section.place),
        repeated=redact_secrets(section.repeated),
    )


def _missing_refs(folder: Path, refs: Sequence[str]) -> list[str]:
    """Return the refs that are paths under `folder` at which no file exists."""
    root = folder.resolve()
    paths = [Path(ref) for ref in refs if Path(ref).is_absolute() and Path(ref).is_relative_to(root)]
    return [str(path) for path in paths if not path.exists()]
