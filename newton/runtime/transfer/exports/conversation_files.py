"""The conversations in an export of a chat program: one file, or several numbered ones."""

from collections.abc import Iterator
from pathlib import Path

from newton.runtime.transfer.exports.archive_files import read_json_files
from newton.runtime.transfer.exports.export_lines import JsonObject, list_objects

CONVERSATION_FILES = "conversations*.json"


def read_conversations(path: Path) -> Iterator[JsonObject]:
    """Yield the conversations in an archive, a folder or a file. Raises InputError as `read_json_files`."""
    for conversations in read_json_files(path, CONVERSATION_FILES).values():
        yield from list_objects(conversations)
