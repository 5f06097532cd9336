"""Import of exports with entries that cannot be read: each is named and left out, and the rest is taken once."""

import gzip
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.errors import InputError
from newton.runtime.transfer.exports.export_detection import find_source, is_document_path
from newton.runtime.transfer.import_lines import DocumentItem, MessageItem
from newton.runtime.transfer.import_source import ImportSource, summarize_source
from tests.system.lines import importer
from tests.system.typed import typed

GREETING = "The kiln is lit at dawn, entry {}."


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def make_chatgpt(number: int, **changed: object) -> dict[str, object]:
    author = {"role": "user"}
    content = {"content_type": "text", "parts": [GREETING.format(number)]}
    message = {"id": f"m{number}", "author": author, "content": content, "create_time": 1.7e9 + number}
    mapping = {"n": {"id": "n", "message": message, "parent": None}}
    return {"id": f"c{number}", "title": f"Kiln {number} 🔥", "mapping": mapping, "current_node": "n", **changed}


def make_claude(number: int) -> dict[str, object]:
    message = {
        "uuid": f"m{number}",
        "sender": "human",
        "text": GREETING.format(number),
        "created_at": "2025-05-01T10:00:00Z",
    }
    return {"uuid": f"c{number}", "name": f"Kiln {number}", "chat_messages": [message]}


def make_mem0(number: int) -> dict[str, object]:
    return {"id": f"{number}", "memory": GREETING.format(number), "created_at": None}


def make_hindsight(number: int) -> dict[str, object]:
    return {"id": f"{number}", "text": GREETING.format(number), "fact_type": "world"}


def make_langgraph(number: int) -> dict[str, object]:
    return {"namespace": ["u"], "key": f"{number}", "value": {"text": GREETING.format(number)}}


MAKERS: dict[str, Callable[[int], dict[str, object]]] = {
    "ChatGPT": make_chatgpt,
    "Claude": make_claude,
    "mem0": make_mem0,
    "Hindsight": make_hindsight,
    "LangGraph": make_langgraph,
}
BROKEN: dict[str, object] = {
    "null": None,
    "number": 5,
    "text": "Kiln",
    "list": ["Kiln"],
    "empty object": {},
    "other object": {"a": 1},
}


def read_texts(source: ImportSource) -> list[str]:
    """Return the texts of messages and facts."""
    items: list[Any] = [item for _, _, item in source.read() if not isinstance(item, Exception)]
    return [item.message.content if isinstance(item, MessageItem) else item.content for item in items]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_broken_entry_is_named_and_the_others_are_taken(
    tmp_path: Path, maker: Callable[[int], dict[str, object]], broken: object
) -> None:
    entries = [maker(0), broken, maker(1), broken, maker(2)]
    source = find_source(write_json(tmp_path / "conversations.json", entries))
    summary = summarize_source(source)
    assert [place.partition(" (")[0] for place, _ in summary.rejections] == [
        "conversations.json, entry 2",
        "conversations.json, entry 4",
    ]
    assert read_texts(source) == [GREETING.format(number) for number in range(3)]


CUTS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "end cut off": (lambda raw: raw[:-60], 2),
    "no closing bracket": (lambda raw: raw[:-1], 3),
    "second entry damaged": (lambda raw: raw.replace(b'"m1"', b'"m1', 1), 1),
    "something after the end": (lambda raw: raw + b" x", 3),
}


@pytest.mark.parametrize(("damage", "taken"), CUTS.values(), ids=CUTS)
def test_the_beginning_of_a_damaged_file_is_taken(tmp_path: Path, damage: Callable[[bytes], bytes], taken: int) -> None:
    path = write_json(tmp_path / "conversations.json", [make_chatgpt(number) for number in range(3)])
    path.write_bytes(damage(path.read_bytes()))
    source = find_source(path)
    ((place, reason),) = summarize_source(source).rejections
    assert place == "conversations.json" and f"not JSON after entry {taken}" in reason
    assert len(read_texts(source)) == taken


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le-marked", "utf-32", "latin-1")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = json.dumps([make_mem0(1) | {"memory": "Das Öl für die Tür"}], ensure_ascii=False)
    raw = b"\xff\xfe" + text.encode("utf-16-le") if encoding.endswith("marked") else text.encode(encoding)
    (tmp_path / "m.json").write_bytes(raw)
    assert read_texts(find_source(tmp_path / "m.json")) == ["Das Öl für die Tür"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_lines_in_another_encoding_are_read_and_the_broken_one_is_named(tmp_path: Path, encoding: str) -> None:
    lines = [json.dumps({"type": "fact", "content": f"Fact ü {n}", "at": "2025-01-01T00:00:00Z"}) for n in range(20)]
    lines[16] = '{"type": "fact", "content": "Fact'
    (tmp_path / "lines.ndjson").write_bytes("\n".join(lines).encode(encoding))
    source = find_source(tmp_path / "lines.ndjson")
    assert [place for place, _ in summarize_source(source).rejections] == ["line 17"]
    assert len(read_texts(source)) == 19


def make_zip(path: Path, **files: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/") + ".json", json.dumps(content))
    return path


def test_a_damaged_file_of_an_archive_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    parts = {f"export__conversations-{n}": [make_chatgpt(n)] * (1 + 30 * (n == 1)) for n in range(3)}
    path = make_zip(tmp_path / "chatgpt.zip", **parts)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/export/._conversations-0.json", b"\0\5\x16")
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("export/conversations-1.json").header_offset
    raw[start + 70 : start + 90] = b"\xff" * 20
    path.write_bytes(raw)
    source = find_source(path)
    ((place, reason),) = summarize_source(source).rejections
    assert place == "export/conversations-1.json" and "cannot be unpacked" in reason
    assert read_texts(source) == [GREETING.format(0), GREETING.format(2)]


UNREADABLE: dict[str, Callable[[Path], bytes]] = {
    "cut off": lambda folder: make_zip(folder / "a.zip", conversations=[make_chatgpt(1)]).read_bytes()[:-40],
    "gzip": lambda folder: gzip.compress(b"[]"),
    "no format": lambda folder: bytes(range(256)),
}


@pytest.mark.parametrize("word", UNREADABLE)
def test_a_file_of_which_nothing_can_be_read_is_refused_with_its_reason(tmp_path: Path, word: str) -> None:
    path = tmp_path / "export.zip"
    path.write_bytes(UNREADABLE[word](tmp_path))
    with pytest.raises(InputError, match=word):
        find_source(path)


def test_a_conversation_not_to_be_remembered_is_left_out_and_counted(tmp_path: Path) -> None:
    entries = [make_chatgpt(0), make_chatgpt(1, is_do_not_remember=True), make_chatgpt(2, is_do_not_remember=False)]
    source = find_source(write_json(tmp_path / "conversations.json", entries))
    assert read_texts(source) == [GREETING.format(0), GREETING.format(2)]
    assert dict(source.passed_over) == {"conversations that are not to be remembered": 1}


CLAUDE_EXTRAS: dict[str, object] = {
    "memories": [
        {
            "conversations_memory": "**Work**\n\nAda runs a pottery.\n\n- She fires at cone 6.\n- She sells in Ghent.",
            "project_memories": {"p1": "The glaze book is due in May."},
            "account_uuid": "a",
        }
    ],
    "projects": [
        {
            "uuid": "p1",
            "name": "Glazes",
            "description": "Recipes of glazes.",
            "prompt_template": "Always answer in rhyme.",
            "docs": [{"uuid": "d1", "filename": "celadon.md", "content": "# Celadon\n\nIron oxide, two percent."}],
        },
        {"uuid": "p0", "name": "How to use Claude", "is_starter_project": True, "docs": []},
    ],
}


async def test_memories_and_projects_of_claude_are_taken_without_instructions(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    source = find_source(make_zip(tmp_path / "c.zip", conversations=[make_claude(0)], users=[], **CLAUDE_EXTRAS))
    summary = summarize_source(source)
    assert (summary.messages, summary.facts, summary.documents, summary.rejected) == (1, 4, 2, 0)
    assert dict(source.passed_over) == {"instructions of projects": 1, "sample projects": 1}
    report = await importer(db, agent).run(source)
    assert (report.new, report.rejections) == (7, [])
    again = await importer(db, agent).run(source)
    assert (again.new, again.unchanged) == (0, 7)
    async with db.transaction(agent) as tx:
        rows = await tx.fetch(
            "select m.full_text, m.summary, m.trust, f.subject from memory.memories as m"
            " left join heart.facts as f using (memory_id) where m.kind in ('fact', 'passage')"
        )
    trusts = {row["full_text"] or row["summary"]: (row["trust"], row["subject"]) for row in rows}
    assert trusts["She fires at cone 6."] == ("agent", "user")
    assert trusts["The glaze book is due in May."] == ("agent", None)
    assert {trust for text, (trust, _) in trusts.items() if "Iron oxide" in str(text)} == {"agent"}, "written by anyone"
    assert not any("rhyme" in str(text) for text in trusts)


async def test_users_and_categories_of_mem0_become_subjects_and_tags(db: Database, agent: UUID, tmp_path: Path) -> None:
    memory = make_mem0(1) | {"user_id": "ada", "categories": ["health_and_diet"], "memory": "Eats no sesame."}
    relation = {"source": "ada", "relationship": "married_to", "target": "Finn"}
    source = find_source(write_json(tmp_path / "m.json", {"results": [memory], "relations": [relation]}))
    report = await importer(db, agent).run(source)
    assert (report.new, report.rejections) == (2, [])
    async with db.transaction(agent) as tx:
        (row,) = await tx.fetch("select subject, tags from heart.facts")
        found = await tx.fetchval("select count(*) from memory.postings where lexeme like 'diet%'")
    assert (row["subject"], row["tags"]) == ("ada", ["health_and_diet"])
    assert found


SLACK_MESSAGES: list[dict[str, object]] = [
    {"user": "U1", "text": "<@U2> the kiln is <https://k.org|here> &amp; hot", "ts": "1700000000.000100"},
    {"user": "U2", "text": "Thanks 🔥", "ts": "1700000060.000200", "thread_ts": "1700000000.000100", "edited": {}},
    {"user": "U3", "text": "has joined", "ts": "1700000070.0", "subtype": "channel_join"},
    {"bot_id": "B1", "text": "Build failed", "ts": "1700000080.0", "subtype": "bot_message"},
    {"text": "x", "ts": "1700000090.0", "subtype": "message_changed"},
    {"user": "U9", "user_profile": {"real_name": "Guest"}, "files": [{"name": "plan.pdf"}], "ts": "1700000100.0"},
]  # fmt: skip


def make_slack(folder: Path, messages: Sequence[object] = SLACK_MESSAGES) -> Path:
    write_json(folder / "channels.json", [{"id": "C1", "name": "pottery", "members": ["U1"]}])
    users = [{"id": "U1", "name": "ada", "profile": {"real_name": "Ada Berg"}}, {"id": "U2", "name": "finn"}]
    write_json(folder / "users.json", users)
    write_json(folder / "pottery" / "2023-11-14.json", messages)
    (folder / "pottery" / "2023-11-15.json").write_text('[{"user": "U1"', encoding="utf-8")
    return folder


@pytest.mark.parametrize("zipped", [False, True])
def test_an_export_of_slack_has_its_speakers_and_channels(tmp_path: Path, *, zipped: bool) -> None:
    path = make_slack(tmp_path / "team")
    if zipped:
        with zipfile.ZipFile(tmp_path / "team.zip", "w") as archive:
            for file in path.rglob("*.json"):
                archive.write(file, f"team/{file.relative_to(path)}")
        path = tmp_path / "team.zip"
    assert not is_document_path(path)
    source = find_source(path)
    items = [item for _, _, item in source.read() if isinstance(item, MessageItem)]
    assert [(item.session, item.message.name, item.message.content, item.message.trust) for item in items] == [
        ("slack:pottery:2023-11-14", "Ada Berg", "@finn the kiln is here (https://k.org) & hot", "agent"),
        ("slack:pottery:2023-11-14", "finn", "Thanks 🔥", "agent"),
        ("slack:pottery:2023-11-14", "Guest", "[file: plan.pdf]", "agent"),
    ]
    assert dict(source.passed_over) == {"joins and other notices": 1, "messages of bots": 1, "edits and deletions": 1}
    assert [Path(place).name for place, _ in summarize_source(source).rejections] == ["2023-11-15.json"]


async def test_a_second_import_takes_what_was_mended_and_doubles_nothing(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    entries = [make_chatgpt(0), make_chatgpt(1, mapping=None), make_chatgpt(2)]
    path = write_json(tmp_path / "conversations.json", entries)
    first = await importer(db, agent).run(find_source(path))
    assert (first.new, len(first.rejections)) == (2, 1)
    write_json(path, [make_chatgpt(number) for number in range(3)])
    second = await importer(db, agent).run(find_source(path))
    assert (second.new, second.unchanged, second.rejections) == (1, 2, [])


DATES = (None, "yesterday", "", "2099-01-01T00:00:00Z", "1700000000", 1_700_000_000_000, -5, (), {"a": 1}, True)


@pytest.mark.parametrize("date", DATES, ids=str)
def test_a_date_that_is_none_costs_no_entry(tmp_path: Path, date: object) -> None:
    conversation = make_chatgpt(1)
    cast("Any", conversation["mapping"])["n"]["message"]["create_time"] = date
    source = find_source(write_json(tmp_path / "conversations.json", [conversation]))
    assert read_texts(source) == [GREETING.format(1)]


PREVIEWS: dict[str, Callable[[Path], Path]] = {
    "table": lambda folder: _write(folder / "x.csv", b"name,age\nAda,41\n"),
    "note": lambda folder: _write(folder / "note.md", b"# Kiln\n\nIt is lit at dawn."),
    "folder": lambda folder: _write(folder / "notes" / "kiln.md", b"# Kiln\n\nSee [[dawn]].").parent,
    "ChatGPT": lambda folder: write_json(folder / "conversations.json", [make_chatgpt(1)]),
    "Slack": lambda folder: make_slack(folder / "team", SLACK_MESSAGES[:1]),
    "lines": lambda folder: _write(folder / "f.ndjson", b'{"type":"fact","content":"x","at":"2025-01-01T00:00:00Z"}'),
}


def _write(path: Path, raw: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("make", PREVIEWS.values(), ids=PREVIEWS)
def test_a_preview_creates_nothing(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = make(tmp_path / "files") if (tmp_path / "files").mkdir() is None else tmp_path
    done = typed(home, "import", str(path), "--preview", "--json")
    assert json.loads(done.stdout)["format"]
    assert list(home.rglob("*")) == [], done


def test_documents_of_a_project_keep_their_names(tmp_path: Path) -> None:
    source = find_source(make_zip(tmp_path / "c.zip", projects=CLAUDE_EXTRAS["projects"]))
    titles = [item.title for _, _, item in source.read() if isinstance(item, DocumentItem)]
    assert titles == ["Glazes", "celadon.md"]


VALUES: list[object] = [None, True, -1, 1e308, "", "x" * 300, "\ud800", "\0", [], {}, [[]], {"a": {}}, "2024-13-45"]
EXPORTS: dict[str, Any] = {
    "chatgpt": [make_chatgpt(number) for number in range(2)],
    "claude": [make_claude(0), *cast("Any", CLAUDE_EXTRAS["projects"]), *cast("Any", CLAUDE_EXTRAS["memories"])],
    "mem0": {"results": [make_mem0(0) | {"user_id": "a", "categories": ["b"], "metadata": {}}], "relations": [{}]},
    "hindsight": [make_hindsight(number) for number in range(2)],
    "langgraph": [make_langgraph(number) for number in range(2)],
    "slack": {"users": [{"id": "U1", "name": "ada", "profile": {}}], "messages": SLACK_MESSAGES},
}


def list_paths(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each part of a JSON value."""
    yield path
    whole = cast("Any", value)
    parts = whole.items() if isinstance(value, dict) else enumerate(whole) if isinstance(value, list) else ()
    for key, part in parts:
        yield from list_paths(part, (*path, key))


def replace_part(value: object, path: tuple[Any, ...], new: object) -> object:
    if not path:
        return new
    changed: Any = copy(value)
    changed[path[0]] = replace_part(changed[path[0]], path[1:], new)
    return changed


@pytest.mark.parametrize("name", EXPORTS)
def test_any_value_at_any_place_is_read_or_named(tmp_path: Path, name: str) -> None:
    export = EXPORTS[name]
    cases = [(path, value) for path in list_paths(export) for value in VALUES]
    for path, value in Random(1).sample(cases, 40 if name == "slack" else 60):
        changed = replace_part(export, path, value)
        file = tmp_path / "conversations.json"
        if name == "slack":
            messages = cast("Any", changed).get("messages") if isinstance(changed, dict) else ()
            file = make_slack(tmp_path / "team", messages)
        else:
            write_json(file, changed)
        try:
            summary = summarize_source(find_source(file))
        except InputError:
            continue
        assert all(place and reason for place, reason in summary.rejections)
        "".join(place for place, _ in summary.rejections).encode()
