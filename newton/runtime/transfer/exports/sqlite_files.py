"""Readers of SQLite databases: the log of the program `llm`, and the memory store of LangGraph."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from newton.errors import InputError
from newton.runtime.transfer.exports.export_lines import ExportLine, build_message_line, find_time, read_change_time
from newton.runtime.transfer.exports.memory_stores import to_fact

MAGIC = b"SQLite format 3\0"
_HINT = "Close the program that uses the file, and check the path."
MAX_ROW_BYTES = 64 * 1024 * 1024

LLM_TABLE, LANGGRAPH_TABLE = "responses", "store"
_LLM_QUERY = """
    select id, conversation_id, prompt, response, datetime_utc from responses order by datetime_utc, id
"""
_LANGGRAPH_QUERY = "select prefix, key, value, created_at, updated_at from store order by created_at, prefix, key"


def list_tables(path: Path) -> set[str]:
    """Return the names of the tables of a database."""
    return {str(name) for (name,) in _query(path, "select name from sqlite_master where type = 'table'")}


def read_llm_log(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield the import lines of the prompts and replies in a log of `llm`, by conversation."""
    _require_plain_table(path, LLM_TABLE)
    for ref, conversation, prompt, response, time in _query(path, _LLM_QUERY):
        session, at = f"llm:{conversation or ref}", find_time(time) or read_change_time(path)
        for role, text in (("user", prompt), ("assistant", response)):
            if not (isinstance(text, str) and text.strip()):
                passed_over["messages without text"] += 1
                continue
            line = build_message_line(session=session, ref=f"{ref}:{role}", role=role, content=text.strip(), at=at)
            yield f"response {ref}", line


def read_langgraph_store(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield the import lines of the items in a store of LangGraph, each as a fact about its namespace."""
    _require_plain_table(path, LANGGRAPH_TABLE)
    for prefix, key, value, created_at, updated_at in _query(path, _LANGGRAPH_QUERY):
        place = f"item {prefix}/{key}"
        try:
            content = json.loads(value if isinstance(value, bytes) else str(value))
        except (ValueError, RecursionError) as error:
            yield place, InputError(f"its value is not JSON: {error}.", hint="Correct it, or leave it out.")
            continue
        at = find_time(updated_at, created_at) or read_change_time(path)
        yield place, to_fact(content, ref=f"langgraph:{prefix}:{key}", at=at)


def _require_plain_table(path: Path, table: str) -> None:
    """Raise InputError for a table with computed columns, whose expressions can take any memory and time."""
    columns = _query(path, f"select name from pragma_table_xinfo('{table}') where hidden")  # noqa: S608 - a constant
    if names := [name for (name,) in columns]:
        hint = "Import a file that the program itself has written."
        raise InputError(f"The table {table!r} has computed columns: {', '.join(map(str, names))[:200]}.", hint=hint)


def _query(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
            connection.execute("pragma trusted_schema = off")  # its functions do not run for a view or a default
            yield from connection.execute(query)
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=_HINT) from None
