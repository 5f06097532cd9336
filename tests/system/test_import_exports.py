"""Import of what other programs export: each format is recognized and counted, and importing again changes nothing."""

import contextlib
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.errors import InputError
from newton.memory.representations import one_line
from newton.runtime.transfer.export_file import is_archive
from newton.runtime.transfer.exports import export_files
from newton.runtime.transfer.exports.document_lines import read_links
from newton.runtime.transfer.exports.export_detection import find_source, is_document_path
from newton.runtime.transfer.import_lines import MessageItem
from newton.runtime.transfer.import_source import ImportSource, summarize_source
from tests.system.lines import importer

Maker = Callable[[Path], Path]


def chatgpt_message(ref: str, role: str, *parts: object, **changed: object) -> dict[str, object]:
    content = {"content_type": "text" if all(isinstance(one, str) for one in parts) else "multimodal_text"}
    fields: dict[str, object] = {"create_time": 1_700_000_000.5, "metadata": {}, "recipient": "all", **changed}
    return {"id": ref, "author": {"role": role}, "content": {**content, "parts": [*parts]}, **fields}


def chatgpt_conversation() -> dict[str, Any]:
    """A conversation whose second question was asked anew: the branch with the first wording is not the open one."""
    messages = {
        "s": chatgpt_message("s", "system", ""),
        "u1": chatgpt_message("u1", "user", "The dentist is on 4 May at nine."),
        "a1": chatgpt_message("a1", "assistant", "I noted the dentist."),
        "old": chatgpt_message("old", "user", "The piano is sold."),
        "new": chatgpt_message("new", "user", {"content_type": "image_asset_pointer"}, "The piano went to Iris."),
        "call": chatgpt_message("call", "assistant", "print(1)", recipient="python"),
        "a2": chatgpt_message("a2", "assistant", "Iris has it now.", create_time=None),
        "h": chatgpt_message("h", "user", "profile", metadata={"is_visually_hidden_from_conversation": True}),
    }
    parents = {"s": "root", "u1": "s", "a1": "u1", "old": "a1", "new": "a1", "call": "new", "a2": "call", "h": "a2"}
    nodes = {ref: {"id": ref, "message": message, "parent": parents[ref]} for ref, message in messages.items()}
    root = {"id": "root", "message": None, "parent": None}
    mapping = {"root": root, **nodes}
    return {"conversation_id": "c1", "create_time": 1.7e9, "current_node": "h", "mapping": mapping}


def make_archive(folder: Path, name: str, **files: object) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(f"export/{file}.json", json.dumps(content))
    return path


def make_chatgpt(folder: Path) -> Path:
    return make_archive(folder, "chatgpt.zip", conversations=[chatgpt_conversation()], user={"id": "u"})


def make_claude(folder: Path) -> Path:
    lease = {"file_name": "lease.txt", "extracted_content": "The rent is due on the third."}
    messages: Any = [
        {"uuid": "m1", "sender": "human", "text": "", "created_at": "2025-05-01T10:00:00Z",
         "content": [{"type": "text", "text": "Read my lease."}],
         "attachments": [lease], "files": []},
        {"uuid": "m2", "sender": "assistant", "created_at": "2025-05-01T10:00:05Z", "text": "x",
         "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "On the third."}]},
        {"uuid": "m3", "sender": "human", "created_at": "2025-05-01T10:01:00Z", "text": "", "content": []},
    ]  # fmt: skip
    conversation = {"uuid": "k1", "name": "Lease", "created_at": "2025-05-01T09:59:00Z", "chat_messages": messages}
    return make_archive(folder, "claude.zip", conversations=[conversation], users=[])


def make_llm(folder: Path) -> Path:
    path = folder / "logs.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table responses (id text, conversation_id text, prompt text, response text, datetime_utc text)"
        )
        rows = [
            ("r1", "v1", "The boiler is a Vaillant.", "Good.", "2025-03-01T10:00:00.123456"),
            ("r2", None, "Hi", "", "2025-03-02T10:00:00+00:00"),
        ]
        connection.executemany("insert into responses values (?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


def make_langgraph(folder: Path) -> Path:
    path = folder / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table store (prefix text, key text, value text, created_at text, updated_at text)")
        value = json.dumps({"food": "oysters", "rating": 5})
        connection.execute("insert into store values ('user.1', 'likes', ?, '2025-03-01 10:00:00', null)", (value,))
    connection.close()
    return path


def make_json(name: str, content: object) -> Maker:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return path

    return make


MEM0 = {"results": [{"id": "1", "memory": "Is allergic to nuts", "created_at": "2025-01-10T10:11:12-07:00"}]}
HINDSIGHT = {"items": [{"id": "h1", "text": "Ana swims", "fact_type": "world", "date": "2025-01-10T00:00:00Z"}]}
LANGGRAPH = [{"namespace": ["u", "1"], "key": "k", "value": {"text": "Ana rows"}, "updated_at": "2025-01-10T00:00:00Z"}]
LETTA = {
    "agents": [{"name": "sam", "messages": [
        {"id": "message-0", "role": "system", "content": "You are Sam.", "created_at": "2025-02-01T00:00:00+00:00"},
        {"id": "message-1", "role": "user", "created_at": "2025-02-01T00:01:00+00:00",
         "content": [{"type": "text", "text": '{"type": "user_message", "message": "I live in Turku."}'}]},
        {"id": "message-2", "role": "assistant", "content": None, "created_at": "2025-02-01T00:01:05+00:00",
         "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Turku is lovely."}'}}]},
    ]}],
    "blocks": [{"id": "block-0", "label": "human", "value": "First name: Chad\nLast name: ?"},
               {"id": "block-1", "label": "persona", "value": "I am Sam."}],
}  # fmt: skip


class Export(NamedTuple):
    """An export: how to make it, a word of its format, its counts, and a text that is stored, with its trust."""

    make: Maker
    word: str
    counts: dict[str, int]
    text: str
    trust: str


EXPORTS = [
    Export(make_chatgpt, "ChatGPT", {"sessions": 1, "messages": 4}, "[image] The piano went to Iris.", "user"),
    Export(
        make_claude, "Claude", {"sessions": 1, "messages": 2, "documents": 1}, "The rent is due on the third.", "agent"
    ),
    Export(make_llm, "llm", {"sessions": 2, "messages": 3}, "The boiler is a Vaillant.", "user"),
    Export(make_langgraph, "LangGraph", {"facts": 1}, "food: oysters; rating: 5", "agent"),
    Export(make_json("mem0.json", MEM0), "mem0", {"facts": 1}, "Is allergic to nuts", "agent"),
    Export(make_json("bank.json", HINDSIGHT), "Hindsight", {"facts": 1}, "Ana swims", "agent"),
    Export(make_json("items.json", LANGGRAPH), "LangGraph", {"facts": 1}, "Ana rows", "agent"),
    Export(
        make_json("sam.af", LETTA), "Letta", {"sessions": 1, "messages": 2, "facts": 1}, "First name: Chad", "agent"
    ),
]
COUNTS = ("sessions", "messages", "facts", "documents", "decisions", "others", "rejected")


async def read_memories(db: Database, agent: UUID) -> list[tuple[str, str]]:
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select summary as text, trust from memory.memories order by text")
    return [(row["text"], row["trust"]) for row in rows]


async def run_import(db: Database, agent: UUID, source: ImportSource) -> tuple[int, int]:
    report = await importer(db, agent).run(source)
    assert report.rejections == []
    return report.new, report.unchanged


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.word)
async def test_an_export_is_counted_and_imported_once(
    db: Database, agent: UUID, tmp_path: Path, export: Export
) -> None:
    source = find_source(export.make(tmp_path))
    assert export.word in source.format
    summary = summarize_source(source)
    assert {key: getattr(summary, key) for key in COUNTS} == dict.fromkeys(COUNTS, 0) | export.counts
    assert (await run_import(db, agent, source))[1] == 0
    stored = await read_memories(db, agent)
    assert any(export.text in one_line(text) and trust == export.trust for text, trust in stored), stored
    assert await run_import(db, agent, source) == (0, summary.total)
    assert await read_memories(db, agent) == stored


async def test_only_the_open_branch_of_a_conversation_is_imported(tmp_path: Path) -> None:
    source = find_source(make_chatgpt(tmp_path))
    texts = [item.message.content for _, _, item in source.read() if isinstance(item, MessageItem)]
    assert texts == [
        "The dentist is on 4 May at nine.",
        "I noted the dentist.",
        "[image]\nThe piano went to Iris.",
        "Iris has it now.",
    ]
    assert dict(source.passed_over) == {"messages of the system": 1, "calls of tools": 1, "hidden messages": 1}


def test_a_conversation_that_refers_to_itself_ends(tmp_path: Path) -> None:
    conversation = chatgpt_conversation()
    conversation["mapping"]["s"]["parent"] = "h"
    source = find_source(make_archive(tmp_path, "x.zip", conversations=[conversation]))
    assert summarize_source(source).messages == 4


UNKNOWN: list[Maker] = [
    make_json("a.json", {"a": 1}),
    make_json("b.json", []),
    lambda folder: make_archive(folder, "c.zip", photos=[]),
    lambda folder: make_archive(folder, "d.zip", conversations={"not": "a list"}),
]


@pytest.mark.parametrize("make", UNKNOWN)
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, make: Maker) -> None:
    with pytest.raises(InputError) as error:
        find_source(make(tmp_path))
    assert "Known formats" in error.value.hint


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 20_000_000 + b"]")
    with pytest.raises(InputError, match="too large to unpack"):
        find_source(path)


def test_lines_and_folders_of_documents_are_told_apart(tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt.ndjson"
    lines.write_text('{"type":"fact","content":"x","at":"2025-01-01"}\n', encoding="utf-8")
    assert not find_source(lines).is_counted
    assert not is_document_path(lines)
    note = tmp_path / "note.md"
    note.write_text("# x", encoding="utf-8")
    assert is_document_path(note)
    assert is_document_path(tmp_path)
    make_json("conversations.json", [chatgpt_conversation()])(tmp_path)
    assert not is_document_path(tmp_path)
    assert "ChatGPT" in find_source(tmp_path).format


def test_links_between_notes_become_relations(tmp_path: Path) -> None:
    texts = {
        "Garden": "We grow [[Tomatoes|toms]], see [bees](sub/Bees.md#hive) and [[Nothing]]. [[Garden]]",
        "Tomatoes": "Ask [[bees#who]] and [[bees]].",
        "Bees": "Alone.",
    }
    paths = [tmp_path / f"{name}.md" for name in texts]
    for path in paths:
        path.write_text(texts[path.stem], encoding="utf-8")
    found = _pairs(read_links(paths))
    assert found == {("Garden", "Tomatoes"), ("Garden", "Bees"), ("Tomatoes", "Bees")}


def _pairs(lines: Iterable[object]) -> set[tuple[str, str]]:
    found = [cast("dict[str, Any]", line) for line in lines if isinstance(line, dict)]
    relations = [line for line in found if line["type"] == "relation"]
    pairs = {(line["source"], line["target"]) for line in relations}
    assert len(pairs) == len(relations)
    return pairs


def make_database(folder: Path, *statements: str) -> Path:
    path = folder / "hostile.db"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_a_database_cannot_compute_its_texts(tmp_path: Path) -> None:
    # a file of 8 KB whose column is an expression took 5 GB of memory
    columns = "id, conversation_id, response, datetime_utc, prompt as (hex(zeroblob(90000000)))"
    row = "insert into responses values (1, 2, 'x', '2024-01-01')"
    path = make_database(tmp_path, f"create table responses ({columns})", row)
    with pytest.raises(InputError, match="computed columns: prompt"):
        summarize_source(find_source(path))


def test_rows_of_a_database_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    path = make_database(
        tmp_path,
        "create table responses (id, conversation_id, prompt, response, datetime_utc)",
        "insert into responses values (1, 2, x'ff00', 7, 4), (2, 2, 'The piano is sold.', null, '2024-01-01')",
    )
    source = find_source(path)
    assert summarize_source(source).messages == 1
    assert source.passed_over["messages without text"] == 3
    deep = "[" * 50_000
    path = make_database(
        tmp_path,
        "create table store (prefix, key, value, created_at, updated_at)",
        f"insert into store values ('a', 'b', 12, 'x', 'y'), ('a', 'c', '{deep}', 1, 2), ('a', 'd', x'ff', 1, 2)",
    )
    summary = summarize_source(find_source(path))
    assert {place for place, _ in summary.rejections} == {"item a/b", "item a/c", "item a/d"}
    assert summary.total == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_refused_with_its_reason(tmp_path: Path, method: int) -> None:
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt_conversation()] * 20))
    raw = bytearray(path.read_bytes())
    raw[60:80] = b"\xff" * 20
    path.write_bytes(raw)
    with pytest.raises(InputError, match="cannot be unpacked"):
        find_source(path)


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_archive(tmp_path, "many.zip", **{f"conversations-{n}": [chatgpt_conversation()] for n in range(4)})
    monkeypatch.setattr(export_files, "MAX_FILE_BYTES", 3_000)

    def unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        pytest.fail(f"{member.filename} was unpacked")

    monkeypatch.setattr(export_files, "_unpack", unpack)
    with pytest.raises(InputError, match=r"more than 1 GiB|too large"):
        find_source(path)
    monkeypatch.undo()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "[" + " " * 2_000_000 + "]")
    with pytest.raises(InputError, match="too large to unpack"):
        find_source(path)


@pytest.mark.parametrize("text", ["[" * 60_000, '{"a":' * 12_000])
def test_deep_nesting_is_refused_with_its_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep"
    path.write_text(text, encoding="utf-8")
    assert is_archive(text.encode()) is False
    with pytest.raises(InputError, match="not JSON"):
        find_source(path)
