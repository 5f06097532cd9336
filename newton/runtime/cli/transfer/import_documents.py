"""The part of `newton import` that takes documents: decision records, and other documents with the links of notes."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from newton.content.document_folders import find_documents
from newton.content.documents import DocumentError, load_bytes, parse_document
from newton.operations.text_format import pluralize
from newton.runtime.cli.formatting import print_json, print_notice
from newton.runtime.cli.printing import say
from newton.runtime.cli.transfer.import_report import print_left_out, rejections_to_json, run_import
from newton.runtime.cli.transfer.ingest import (
    IngestOptions,
    describe_rejected,
    describe_skipped,
    list_rejected,
    run_ingest,
    skipped_to_json,
)
from newton.runtime.error_status import EXIT_OK, EXIT_REFUSED
from newton.runtime.transfer.exports.document_lines import read_links, read_record_lines, read_records
from newton.runtime.transfer.exports.export_lines import ExportLine, convert_lines
from newton.runtime.transfer.import_source import ImportReport, ImportSource, SourceSummary, summarize_source


class DocumentImport:
    """The contents of a folder of documents: decision records, the links between notes, and the other documents."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = find_documents(path)
        self.records = read_records(self.found.documents)
        self.record_paths = frozenset(record.path for record in self.records)
        self.documents = [one for one in self.found.documents if one not in self.record_paths]
        self.passed_over = Counter[str]()
        self.lines = list(self._read_lines())
        self.source = ImportSource(format="documents", read=lambda: convert_lines(self.lines))
        self.summary = summarize_source(self.source) if self.lines else SourceSummary()

    def count(self, line_type: str) -> int:
        return sum(not isinstance(line, Exception) and line["type"] == line_type for _, line in self.lines)

    def to_json(self) -> dict[str, object]:
        return {
            "decisions": self.summary.decisions,
            "links": self.count("relation"),
            "passed_over": dict(self.passed_over),
        }

    def describe(self) -> Iterator[str]:
        """Yield a line with the number of decision records, and one with the number of links, unless it is 0."""
        if self.summary.decisions:
            yield f"{pluralize(self.summary.decisions, 'decision record')} as decisions"
        if links := self.count("relation"):
            yield f"{pluralize(links, 'link')} between notes as relations"

    def _read_lines(self) -> Iterator[ExportLine]:
        yield from read_record_lines(self.records, self.passed_over)
        if self.path.is_dir():
            yield from ((str(self.path), line) for line in read_links(self.documents))


async def import_documents(path: Path, *, agent: str | None, json: bool) -> int:
    """Store the decision records of a path as decisions, and other documents as passages. Return the exit status."""
    content = await asyncio.to_thread(DocumentImport, path)
    report = ImportReport()
    if content.lines:
        report = await run_import(content.source, len(content.lines), agent=agent)
        if not json:
            for one in content.describe():
                say(f"{one}{'' if report.new else ', all of them known'}.")
            print_left_out(content.passed_over, report.rejections)
    status = EXIT_REFUSED if report.rejections else EXIT_OK
    if content.records and not content.documents and not json:
        return status
    options = IngestOptions(
        path=str(path),
        json=json,
        without=content.record_paths,
        report_fields={**content.to_json(), "imported": report.new},
        rejected=report.rejections,
    )
    return await run_ingest(options, agent=agent) or status


async def preview_documents(path: Path, *, json: bool) -> int:
    """Read the documents of a path, and show what an import would store. Return the exit status."""
    content = DocumentImport(path)
    errors = [error for one in content.documents if (error := _find_error(one))]
    documents, rejections = len(content.documents) - len(errors), content.summary.rejections
    if json:
        rejected = rejections_to_json([*list_rejected(errors), *rejections])
        fields = {"format": "documents", "documents": documents, "rejected": rejected}
        print_json({**fields, **content.to_json(), "skipped": skipped_to_json(content.found.skipped)})
    else:
        say(f"{path}: {', '.join([pluralize(documents, 'document'), *content.describe()])}.")
        for notice in (*describe_skipped(content.found.skipped, str(path)), *describe_rejected(errors)):
            print_notice(notice)
        print_left_out(content.passed_over, rejections)
    return EXIT_REFUSED if errors or rejections else EXIT_OK


def _find_error(path: Path) -> DocumentError | None:
    try:
        parse_document(load_bytes(path))
    except DocumentError as error:
        return error
    return None
