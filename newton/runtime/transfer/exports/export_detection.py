"""Recognition of the format of a file or folder to import, by its content."""

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from newton.content.file_formats import find_format
from newton.errors import InputError
from newton.memory.memory import Trust
from newton.runtime.transfer.exports import chatgpt, claude, memory_stores, sqlite_files
from newton.runtime.transfer.exports.archive_files import list_names, read_json_files
from newton.runtime.transfer.exports.conversation_files import CONVERSATION_FILES
from newton.runtime.transfer.exports.export_lines import JsonObject, number_lines
from newton.runtime.transfer.import_source import ImportSource
from newton.runtime.transfer.ndjson import read_file

LINE_SUFFIXES = (".ndjson", ".jsonl", ".json", ".af")
LineReader = Callable[[Path, Counter[str]], Iterator[JsonObject]]


class ExportFormat(NamedTuple):
    """A format of exports: its name for people, the check of the JSON value, the reader and the trust of its facts."""

    name: str
    matches: Callable[[JsonValue], bool]
    read: LineReader
    trust: Trust = "user"


JSON_FORMATS: Sequence[ExportFormat] = (
    ExportFormat("an export of ChatGPT", chatgpt.matches, chatgpt.read_lines),
    ExportFormat("an export of Claude", claude.matches, claude.read_lines),
    ExportFormat("an agent file of Letta", memory_stores.matches_letta, memory_stores.read_letta, "agent"),
    ExportFormat("memories of mem0", memory_stores.matches_mem0, memory_stores.read_mem0, "agent"),
    ExportFormat("items of a LangGraph store", memory_stores.matches_langgraph, memory_stores.read_langgraph, "agent"),
    ExportFormat("memories of Hindsight", memory_stores.matches_hindsight, memory_stores.read_hindsight, "agent"),
)
KNOWN_FORMATS = (
    "Known formats: NDJSON lines, an agent exported by `newton export`, the archives of ChatGPT and Claude, the log of"
    " `llm`, a LangGraph store, and memories of mem0, Letta (.af) and Hindsight. `newton ingest` stores documents."
)


def is_document_path(path: Path) -> bool:
    """Return whether a path is a folder without conversations, or a document that is neither JSON nor an archive."""
    if path.is_dir():
        return not any(fnmatch(name, CONVERSATION_FILES) for name in list_names(path))
    return find_format(path) not in (None, "data") and path.suffix.lower() not in LINE_SUFFIXES


def find_source(path: Path) -> ImportSource:
    """Return the source of a file or folder in the format that its content has; another file has NDJSON lines.

    Raises InputError for an archive, a folder, a database or a JSON file in none of the known formats.
    """
    if path.is_dir() or zipfile.is_zipfile(path):
        if not any(fnmatch(name, CONVERSATION_FILES) for name in list_names(path)):
            raise _build_format_error(path)
        return _find_json_source(path)
    if _starts_with(path, sqlite_files.MAGIC):
        return _find_database_source(path)
    if _is_json_document(path):
        return _find_json_source(path)
    return read_file(path)


def _find_json_source(path: Path) -> ImportSource:
    values = list(read_json_files(path, CONVERSATION_FILES).values())
    for form in JSON_FORMATS:
        if values and all(form.matches(value) for value in values):
            return _build_source(path, form.name, form.read, form.trust)
    raise _build_format_error(path)


def _find_database_source(path: Path) -> ImportSource:
    tables = sqlite_files.list_tables(path)
    if sqlite_files.LLM_TABLE in tables:
        return _build_source(path, "a log of llm", sqlite_files.read_llm_log, "user")
    if sqlite_files.LANGGRAPH_TABLE in tables:
        return _build_source(path, "a LangGraph store", sqlite_files.read_langgraph_store, "agent")
    raise _build_format_error(path)


def _build_source(path: Path, name: str, read: LineReader, trust: Trust) -> ImportSource:
    passed_over = Counter[str]()
    return ImportSource(
        format=name, trust=trust, passed_over=passed_over, read=lambda: number_lines(read(path, passed_over))
    )


def _is_json_document(path: Path) -> bool:
    """Return whether a file is one JSON value rather than a line of NDJSON for each object. A pipe is NDJSON."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(64 * 1024).strip()
    except OSError:
        return False
    if first.startswith(b"["):
        return True
    if not first.startswith(b"{"):
        return False
    try:
        return "type" not in json.loads(first) and "newton" not in first.decode("utf-8", "replace")
    except (ValueError, RecursionError):  # an object over several lines, too deep, or longer than what was read
        return not first.startswith((b'{"type"', b'{"ref"')) and path.suffix != ".ndjson"


def _starts_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _build_format_error(path: Path) -> InputError:
    return InputError(f"{path} has no format that can be imported.", hint=KNOWN_FORMATS)
