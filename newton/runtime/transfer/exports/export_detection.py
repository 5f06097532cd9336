"""Recognition of the format of a file or folder to import, by its content."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from newton.content.file_formats import SNIFFED_BYTES, find_byte_order_mark, find_format, looks_like_text
from newton.errors import InputError
from newton.file_access import open_regular
from newton.memory.memory import Trust
from newton.runtime.transfer.exports import chatgpt, claude, memory_stores, slack
from newton.runtime.transfer.exports.export_files import is_zip_archive, list_values, read_json_files, select_names
from newton.runtime.transfer.exports.export_lines import ExportLine, JsonObject, convert_lines, is_object
from newton.runtime.transfer.import_source import ImportSource, SourceEntry, read_file

LINE_SUFFIXES = (".ndjson", ".jsonl", ".json", ".af")
LineReader = Callable[[Path, Counter[str]], Iterator[ExportLine]]
SAMPLE_ENTRIES = 20  # of which more than half must be in a format
GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"


class ExportFormat(NamedTuple):
    """A format of exports of other programs: its name for people, the check of an entry, and the reader.

    If a file is an object, its entries are the list under one of `keys`. `trust` is that of the facts. `files` are the
    patterns of the files in an archive or a folder; without them, only single files have the format.
    """

    name: str
    matches: Callable[[JsonObject], bool]
    read: LineReader
    trust: Trust = "agent"
    keys: Sequence[str] = ()
    files: Sequence[str] = ()


JSON_FORMATS: Sequence[ExportFormat] = (
    ExportFormat("an export of ChatGPT", chatgpt.matches, chatgpt.read_lines, files=chatgpt.FILES),
    ExportFormat("an export of Claude", claude.matches, claude.read_lines, files=claude.FILES),
    ExportFormat("an agent file of Letta", memory_stores.matches_letta, memory_stores.read_letta),
    ExportFormat("memories of mem0", memory_stores.matches_mem0, memory_stores.read_mem0, keys=memory_stores.MEM0_KEYS),
    ExportFormat(
        "items of a LangGraph store",
        memory_stores.matches_langgraph,
        memory_stores.read_langgraph,
        keys=memory_stores.LANGGRAPH_KEYS,
    ),
    ExportFormat(
        "memories of Hindsight",
        memory_stores.matches_hindsight,
        memory_stores.read_hindsight,
        keys=memory_stores.HINDSIGHT_KEYS,
    ),
)
KNOWN_FORMATS = (
    "Known formats: NDJSON lines, an agent exported by `newton export`, the archives of ChatGPT, Claude and Slack, the"
    " log of `llm`, a LangGraph store, and memories of mem0, Letta (.af) and Hindsight. `newton ingest` stores"
    " documents."
)


def is_document_path(path: Path) -> bool:
    """Return whether a path is a folder without conversations, or a document that is neither JSON nor an archive."""
    if path.is_dir():
        return not (_has_conversations(path) or slack.is_slack_export(path))
    return find_format(path) not in (None, "data") and path.suffix.lower() not in LINE_SUFFIXES


def find_source(path: Path) -> ImportSource:
    """Recognize the format of a file or folder, and return the source of its items. An unknown text is NDJSON lines.

    Raises InputError for an archive, a folder, a database or a JSON file in none of the known formats.
    """
    if path.is_dir() or is_zip_archive(path):
        if slack.is_slack_export(path):
            # its messages are of many people, so they have not the trust of the user's word
            return _build_source(path, "an export of Slack", slack.read_lines, "agent", min_trust="agent")
        if not _has_conversations(path):
            raise _build_format_error(path)
        return _find_json_source(path)
    head = _read_head(path)
    if head.startswith(memory_stores.MAGIC):
        return _find_database_source(path)
    if head.startswith((GZIP_MAGIC, ZIP_MAGIC)):
        what = "is compressed with gzip" if head.startswith(GZIP_MAGIC) else "is an archive that is cut off or damaged"
        raise InputError(f"{path} {what}.", hint="Unpack it, or download it again.")
    if head and not looks_like_text(head):
        raise _build_format_error(path)
    if _is_json_document(path, head):
        return _find_json_source(path)
    return read_file(path)


def _has_conversations(path: Path) -> bool:
    """Return whether an archive has a file of an export, or a folder its conversations. Other folders have projects."""
    patterns = [pattern for form in JSON_FORMATS for pattern in form.files]
    return bool(select_names(path, *(chatgpt.FILES if path.is_dir() else patterns)))


def _find_json_source(path: Path) -> ImportSource:
    patterns = [pattern for form in JSON_FORMATS for pattern in form.files]
    files = list(read_json_files(path, *patterns))
    for form in JSON_FORMATS:
        values = [value for file in files for value in list_values(file.value, *form.keys)][:SAMPLE_ENTRIES]
        if 2 * sum(is_object(value) and form.matches(value) for value in values) > len(values):
            return _build_source(path, form.name, form.read, form.trust)
    if error := next(
        (InputError(f"{one.name}: {one.error.what}", hint=one.error.hint) for one in files if one.error), None
    ):
        raise error
    raise _build_format_error(path)


def _find_database_source(path: Path) -> ImportSource:
    tables = memory_stores.list_tables(path)
    if memory_stores.LLM_TABLE in tables:
        return _build_source(path, "a log of llm", memory_stores.read_llm_log, "user")
    if memory_stores.LANGGRAPH_TABLE in tables:
        return _build_source(path, "a LangGraph store", memory_stores.read_langgraph_store, "agent")
    raise _build_format_error(path)


def _build_source(
    path: Path, name: str, read: LineReader, trust: Trust, *, min_trust: Trust | None = None
) -> ImportSource:
    passed_over = Counter[str]()

    def read_source() -> Iterator[SourceEntry]:
        passed_over.clear()
        return convert_lines(read(path, passed_over), min_trust=min_trust)

    return ImportSource(format=name, trust=trust, passed_over=passed_over, read=read_source)


def _is_json_document(path: Path, head: bytes) -> bool:
    """Return whether a file is one JSON value rather than a line of NDJSON for each object. A pipe is NDJSON."""
    first = head.decode(find_byte_order_mark(head) or "utf-8", "replace").lstrip("\ufeff \t\r\n").split("\n")[0].strip()
    if first.startswith("["):
        return True
    if not first.startswith("{"):
        return False
    try:
        return "type" not in json.loads(first) and "newton" not in first
    except (ValueError, RecursionError):  # an object over several lines, too deep, or longer than what was read
        return not first.startswith(('{"type"', '{"ref"')) and path.suffix != ".ndjson"


def _read_head(path: Path) -> bytes:
    """Return the first bytes of a file; nothing of a pipe, which can be read only once."""
    try:
        with open_regular(path) as file:
            return file.read(SNIFFED_BYTES)
    except OSError:
        return b""


def _build_format_error(path: Path) -> InputError:
    return InputError(f"{path} has no format that can be imported.", hint=KNOWN_FORMATS)
