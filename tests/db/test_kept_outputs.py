"""Long outputs, pasted texts and files of a session, kept whole: read by lines, found, and gone with their message."""

import asyncio
import json
from collections.abc import Sequence
from uuid import UUID

import pytest

from newton.agent.inventory.artifacts import ArtifactPage, ArtifactReadQuery, ArtifactService
from newton.agent.maintenance.artifact_vectors import embed_artifacts
from newton.agent.services.erasure import ErasureService
from newton.db.pool import Database, Tx, connect
from newton.dialogue import artifact_store, branches, log, sessions
from newton.dialogue.artifact_recorder import OUTPUT_TOKENS
from newton.dialogue.artifact_store import ArtifactVersion, NewArtifact
from newton.dialogue.artifact_text import CHUNK_LINES
from newton.dialogue.messages import Message
from newton.dialogue.sessions import TRIM_TOOL_TOKENS
from newton.errors import InputError, NotFoundError
from newton.memory.forgetting import forget
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.chat import ToolCall
from newton.providers.fakes import HashEmbedder
from tests.statements import list_scans
from tests.support import NOON, agent_scope, count, teller

WANTED = "worker-7 bound to port 48213"


def log_lines(lines: int = 6_000, *, wanted: int = 3_217) -> list[str]:
    written = [f"2026-03-11 GET /api/item/{n} answered with {200 + n % 7} in {n % 90} ms" for n in range(1, lines + 1)]
    written[min(wanted, lines) - 1] = WANTED
    return written


def service(db: Database, agent: UUID) -> ArtifactService:
    return ArtifactService(scope=agent_scope(agent_id=agent, db=db, embedder=HashEmbedder()))


async def run_tool(
    db: Database, agent: UUID, output: str, *, ref: str = "s1", call: ToolCall | None = None, asked: str = "Run it."
) -> UUID:
    """A turn in which a tool answers; returns the session."""
    call = call or ToolCall("c1", "bash", json.dumps({"command": "tail app.log"}))
    lines = [
        Message(role="user", content=asked, said_at=NOON),
        Message(role="assistant", content="", said_at=NOON, calls=(call,)),
        Message(role="tool", content=output, said_at=NOON, tool_call_id=call.id),
    ]
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref=ref, now=NOON)
        await sessions.append(tx, lines, session_id=session_id, ctx=teller(agent))
    return session_id


async def view_text(db: Database, agent: UUID, session_id: UUID) -> str:
    async with db.transaction(agent) as tx:
        view = (await log.load_view(tx, agent_id=agent, session_id=session_id)).view
    return "\n".join(item.text for item in view)


async def only(db: Database, agent: UUID, session_id: UUID) -> ArtifactVersion:
    (found,) = await service(db, agent).list_versions(session_id)
    return found


def shown(page: ArtifactPage) -> list[str]:
    return [line for passage in page.passages for line in passage.lines]


async def test_a_long_output_is_kept_whole_and_the_prompt_holds_its_ends_and_its_name(
    db: Database, agent: UUID
) -> None:
    # S003-21: a file of more than 5,000 lines; S003-26: what left the view can be referred to
    lines = log_lines()
    lines[4_000] = "ERROR: the disk of shard 4 is gone"
    session_id = await run_tool(db, agent, "\n".join(lines))
    kept = await only(db, agent, session_id)
    assert (kept.name, kept.kind, kept.line_count, kept.trust) == ("bash-tail-app.log.out", "output", 6_000, "tool")
    _, text = await service(db, agent).read_text(session_id, kept.name)
    assert text == "\n".join(lines)
    prompt = await view_text(db, agent, session_id)
    assert f"[Artifact {kept.name}, version 1: 6,000 lines" in prompt
    for number in (1, 4_001, 6_000):
        assert f"{number}| {lines[number - 1]}" in prompt
    assert count(prompt) <= TRIM_TOOL_TOKENS[1] + 50


async def test_lines_with_the_words_of_the_request_are_in_the_prompt(db: Database, agent: UUID) -> None:
    # S001-19: words of the request raise what has them
    names = ["Ana", "Bert", "Cleo", "Dora", "Emil", "Fred", "Gus", "Hana"]
    rows = [f"{n},{names[n % 8]} Smith,{names[n // 8 % 8]},{n % 97}.00" for n in range(3_000)]
    rows[1_700] = "1700,Saoirse Keane,Galway,45.10"
    session_id = await run_tool(db, agent, "\n".join(rows), asked="How much did Saoirse Keane pay?")
    assert f"1701| {rows[1_700]}" in await view_text(db, agent, session_id)


async def test_lines_are_read_again_by_their_numbers_page_by_page(db: Database, agent: UUID) -> None:
    # S003-26
    lines = log_lines()
    session_id = await run_tool(db, agent, "\n".join(lines))
    artifacts, name = service(db, agent), (await only(db, agent, session_id)).name
    page = await artifacts.read(session_id, ArtifactReadQuery(name=name, lines="3200-3230"))
    assert (shown(page), page.next_lines) == (lines[3_199:3_230], None)
    last = await artifacts.read(session_id, ArtifactReadQuery(name=name, lines="-5"))
    assert shown(last) == lines[-5:]
    read: list[str] = []
    following: str | None = "1-"
    while following:
        page = await artifacts.read(session_id, ArtifactReadQuery(name=name, lines=following))
        read += shown(page)
        following = page.next_lines
    assert read == lines


async def test_fifty_lines_of_a_hundred_thousand_read_two_chunks(db: Database, dsn: str, agent: UUID) -> None:
    # S004-7: in chunks
    lines = [f"row {n}" for n in range(100_000)]
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
        table = NewArtifact(name="t", kind="upload", media_type="text/plain", trust="user", text="\n".join(lines))
        await artifact_store.add(tx, [table], session_id=session_id, ctx=teller(agent))
    kept = await only(db, agent, session_id)
    page = await service(db, agent).read(session_id, ArtifactReadQuery(name="t", lines="70000-70049"))
    assert shown(page) == lines[69_999:70_049]
    async with connect(dsn) as owner:  # what earlier tests had in the table is no guide
        await owner.execute("vacuum analyze dialogue.artifact_chunks")
    async with db.transaction(agent) as tx:
        chunks = await tx.fetchval("select count(*) from dialogue.artifact_chunks")
        query = f"explain (analyze, buffers, format json) {artifact_store.SQL['read_ranges'].sql}"
        plan = await tx.fetchval(query, agent, [kept.artifact_id], [70_000 - CHUNK_LINES], [70_000], [70_049])
    assert chunks > 1_000
    (scan,) = list_scans(plan, "artifact_chunks")
    assert scan["Actual Rows"] * scan["Actual Loops"] <= 2
    assert scan.get("Rows Removed by Filter", 0) <= 2
    assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] < 20


async def test_a_search_finds_a_line_by_any_form_of_its_words_and_parts_of_identifiers(
    db: Database, agent: UUID
) -> None:
    # S004-8
    lines = log_lines()
    lines[99], lines[4_999] = "    MAX_UPLOAD_BYTES = 26_214_400", "def rotateSessionKey(grace): ..."
    session_id = await run_tool(db, agent, "\n".join(lines))
    artifacts = service(db, agent)
    for search, line in (("binding port", WANTED), ("uploads maximum", lines[99]), ("rotating sessions", lines[4_999])):
        page = await artifacts.read(session_id, ArtifactReadQuery(search=search))
        assert line in shown(page), search
        (passage,) = [one for one in page.passages if line in one.lines]
        assert passage.lines[passage.found_lines[0] - passage.first_line] == line
    nothing = await artifacts.read(session_id, ArtifactReadQuery(search="zeppelin"))
    assert shown(nothing) == []


async def test_a_search_is_paged_and_the_header_of_a_table_comes_with_each_page(db: Database, agent: UUID) -> None:
    # S004-8
    rows = ["order,name,city", *(f"{n},customer {n} of Turku,Turku" for n in range(900))]
    session_id = await run_tool(db, agent, "\n".join(rows))
    artifacts, seen = service(db, agent), set[str]()
    offset: int | None = 0
    while offset is not None:
        page = await artifacts.read(session_id, ArtifactReadQuery(search="Turku", offset=offset))
        assert shown(page)[0] == rows[0]
        assert offset == 0 or set(shown(page)[1:]).isdisjoint(seen)
        seen |= set(shown(page)[1:])
        offset = page.next_offset
    assert len(seen) >= 400


async def test_a_word_of_every_line_neither_hides_the_best_line_nor_makes_the_page_longer(
    db: Database, agent: UUID
) -> None:
    # S003-26, S004-8
    lines = [f"row {n}: crane {n} of pier {n % 7} lifts lorries on the ferry Artemis" for n in range(900)]
    session_id = await run_tool(db, agent, "\n".join(lines))
    page = await service(db, agent).read(session_id, ArtifactReadQuery(search="crane 777 lorries"))
    assert lines[777] in page.passages[0].lines and len(page.passages[0].lines) < 20
    assert len("\n".join(shown(page))) <= 8_000 and page.next_offset
    assert len(shown(page)) == len(set(shown(page)))


@pytest.mark.slow
async def test_the_job_embeds_passages_that_a_search_without_common_words_then_finds(db: Database, agent: UUID) -> None:
    # S004-2: the same embedder
    lines = log_lines()
    session_id = await run_tool(db, agent, "\n".join(lines))
    scope = agent_scope(agent_id=agent, db=db, embedder=HashEmbedder())
    assert await embed_artifacts(scope) == 0, "no model is active yet"
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    assert await embed_artifacts(scope) == 1
    assert await embed_artifacts(scope) == 0
    kept = await only(db, agent, session_id)
    async with db.transaction(agent) as tx:
        (vector,) = await HashEmbedder().embed([WANTED])
        model_id = await tx.fetchval("select model_id from memory.active_models")
        similar = await artifact_store.search_vectors(tx, [kept.artifact_id], vector, model_id=model_id, agent_id=agent)
    assert max(similar, key=lambda one: one.similarity).line == 3_217


async def test_a_new_value_of_a_table_is_found_by_its_own_vector_and_not_by_that_of_its_row(
    db: Database, agent: UUID
) -> None:
    # S003-26, S004-2
    rows = ["order,customer,state", *(f"{n},customer {n} of Turku,{('paid', 'sent')[n % 2]}" for n in range(900))]
    rows[700] = "699,Ines Carvalho,fraud suspected"
    session_id = await run_tool(db, agent, "\n".join(rows))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    await embed_artifacts(agent_scope(agent_id=agent, db=db, embedder=HashEmbedder()))
    artifact = await only(db, agent, session_id)
    async with db.transaction(agent) as tx:
        (vector,) = await HashEmbedder().embed(["fraud suspected"])
        model_id = await tx.fetchval("select model_id from memory.active_models")
        similar = await artifact_store.search_vectors(
            tx, [artifact.artifact_id], vector, model_id=model_id, agent_id=agent
        )
    best = {max(similar, key=lambda one: one.similarity), max(similar, key=lambda one: one.contrast)}
    assert [(one.line, round(one.similarity, 2)) for one in best] == [(701, 1.0)]
    assert all(-1.01 <= one.contrast <= 1.01 for one in similar)


async def test_an_equal_text_is_one_version_and_a_changed_one_is_the_next(db: Database, agent: UUID) -> None:
    # S003-23: the same tool many times
    first, second = log_lines(900), log_lines(900, wanted=5)
    calls = [ToolCall(f"c{number}", "bash", '{"command": "pytest -q"}') for number in range(3)]
    session_id = await run_tool(db, agent, "\n".join(first), call=calls[0])
    for call, output in zip(calls[1:], (first, second), strict=True):
        assert await run_tool(db, agent, "\n".join(output), call=call) == session_id
    artifacts = service(db, agent)
    versions = await artifacts.list_versions(session_id)
    assert [(one.name, one.version) for one in versions] == [("bash-pytest--q.out", 2), ("bash-pytest--q.out", 1)]
    diff = await artifacts.diff(session_id, "bash-pytest--q.out")
    assert f"+{WANTED}" in diff
    assert shown(await artifacts.read(session_id, ArtifactReadQuery(name=versions[0].name, version=1, lines="5"))) == [
        first[4]
    ]
    with pytest.raises(NotFoundError, match="no version 3"):
        await artifacts.read(session_id, ArtifactReadQuery(name=versions[0].name, version=3))
    with pytest.raises(NotFoundError) as error:
        await artifacts.read(session_id, ArtifactReadQuery(name="bash-pytest.out"))
    assert "bash-pytest--q.out" in error.value.hint


async def test_files_that_a_tool_writes_and_named_code_blocks_are_artifacts_with_versions(
    db: Database, agent: UUID
) -> None:
    # S003-A: paths and names are kept
    write = ToolCall("w1", "write_file", json.dumps({"path": "src/app.py", "content": "  x = 1\ny = 2\n"}))
    session_id = await run_tool(db, agent, "written", call=write)
    edit = ToolCall("w2", "edit", json.dumps({"file_path": "src/app.py", "old_string": "y = 2", "new_string": "y = 3"}))
    await run_tool(db, agent, "done", call=edit)
    failed = ToolCall("w3", "write_file", json.dumps({"path": "src/no.py", "content": "z"}))
    await run_tool(db, agent, "Error: permission denied", call=failed)
    block = "Here it is:\n\n`tools/run.sh`:\n```sh\necho go\n```\nand\n```python\nprint('no name')\n```"
    async with db.transaction(agent) as tx:
        reply = Message(role="assistant", content=block, said_at=NOON)
        await sessions.append(tx, [reply], session_id=session_id, ctx=teller(agent))
    artifacts = service(db, agent)
    listed = [(one.name, one.version, one.kind) for one in await artifacts.list_versions(session_id)]
    assert listed == [("tools/run.sh", 1, "file"), ("src/app.py", 2, "file"), ("src/app.py", 1, "file")]
    assert (await artifacts.read_text(session_id, "src/app.py"))[1] == "  x = 1\ny = 3\n"
    assert (await artifacts.read_text(session_id, "tools/run.sh"))[1] == "echo go\n"


async def test_a_branch_sees_what_its_parent_had_and_adds_its_own(db: Database, agent: UUID) -> None:
    # S003-26
    session_id = await run_tool(db, agent, "\n".join(log_lines(400)))
    async with db.transaction(agent) as tx:
        other_id = await branches.create_branch(tx, "other", parent_id=session_id, from_position=2, ctx=teller(agent))
    await run_tool(db, agent, "\n".join(log_lines(500)), call=ToolCall("c9", "later", "{}"))
    assert [one.name for one in await service(db, agent).list_versions(other_id)] == ["bash-tail-app.log.out"]
    assert len(await service(db, agent).list_versions(session_id)) == 2


async def test_a_forgotten_message_takes_its_artifact_along(db: Database, agent: UUID) -> None:
    # S002-16: what is forgotten is gone
    session_id = await run_tool(db, agent, "\n".join(log_lines(900, wanted=450)))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    await embed_artifacts(agent_scope(agent_id=agent, db=db, embedder=HashEmbedder()))
    async with db.transaction(agent) as tx:
        memory_id = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange' and position = 2")
        await forget(tx, [memory_id], derived=True, reason="asked", ctx=teller(agent))
        assert await rows(tx) == [0, 0, 0]
    assert await service(db, agent).list_versions(session_id) == []
    assert WANTED not in await view_text(db, agent, session_id)


async def rows(tx: Tx) -> Sequence[int]:
    tables = ("artifact_versions", "artifact_chunks", "artifact_vectors")
    return [await tx.fetchval(f"select count(*) from dialogue.{table}") for table in tables]


async def test_an_upload_about_a_person_is_erased_with_the_person(db: Database, agent: UUID) -> None:
    artifacts = service(db, agent)
    await artifacts.add("s1", "guests.txt", "Bo\nMira Quist\nAda\n")
    await artifacts.add("s1", "shopping.txt", "milk\n")
    erasing = ErasureService(scope=artifacts.scope)
    plan = await erasing.plan("Mira Quist")
    assert [kind for _, kind in plan.related] == ["artifact"]
    await erasing.erase("Mira Quist", token=plan.token, reason="asked")
    session_id = await artifacts.find_session("s1")
    assert [one.name for one in await artifacts.list_versions(session_id)] == ["shopping.txt"]


async def test_a_version_can_be_deleted_and_leaves_a_record(db: Database, agent: UUID) -> None:
    artifacts = service(db, agent)
    for text in ("one", "two"):
        await artifacts.add("s1", "notes.txt", text)
    session_id = await artifacts.find_session(None)
    assert await artifacts.delete(session_id, "notes.txt", version=1, reason="old") == 1
    assert [one.version for one in await artifacts.list_versions(session_id)] == [2]
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.forgotten where kind = 'artifact'") == 1


async def test_secrets_of_uploads_and_written_files_are_removed_before_they_are_stored(
    db: Database, agent: UUID
) -> None:
    secret = "ghp_" + "a1B2" * 10
    added = await service(db, agent).add("s1", "env.txt", f"TOKEN={secret}\n")
    call = ToolCall("w1", "write_file", json.dumps({"path": ".env.txt", "content": f"export T={secret}\n"}))
    await run_tool(db, agent, "ok", call=call)
    async with db.transaction(agent) as tx:
        texts = [row["text"] for row in await tx.fetch("select text from dialogue.artifact_chunks")]
    assert sum(added.redacted.values()) == 1
    assert len(texts) == 2
    assert all("[REDACTED:github-token]" in text and secret not in text for text in texts)


async def test_of_a_binary_only_the_reference_is_kept(db: Database, agent: UUID) -> None:
    artifacts = service(db, agent)
    added = await artifacts.add_reference(
        "s1", "plan.png", media_type="image/png", byte_count=70_000, sha256=bytes(range(32))
    )
    assert (added.line_count, added.byte_count) == (0, 70_000)
    session_id = await artifacts.find_session("s1")
    with pytest.raises(InputError, match=r"'plan.png' is a binary \(image/png, 70,000 bytes\)"):
        await artifacts.read(session_id, ArtifactReadQuery(name="plan.png"))


async def test_limits_name_the_size_and_the_remedy(db: Database, agent: UUID) -> None:
    artifacts = service(db, agent)
    with pytest.raises(InputError, match=r"has 10,000,001 characters; the maximum is 10,000,000") as error:
        await artifacts.add("s1", "big.txt", "x" * 10_000_001)
    assert error.value.hint == "Split the artifact into parts."
    await artifacts.add("s1", "a.txt", "one\ntwo")
    session_id = await artifacts.find_session("s1")
    for lines, message in (("5-9", "has only 2 lines"), ("2-1", "ends before"), ("all", "no range of lines")):
        with pytest.raises(InputError, match=message):
            await artifacts.read(session_id, ArtifactReadQuery(name="a.txt", lines=lines))
    with pytest.raises(InputError, match="only one version"):
        await artifacts.diff(session_id, "a.txt")


async def test_two_outputs_at_once_get_two_versions(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
    artifacts = service(db, agent)
    await asyncio.gather(*(artifacts.add("s1", "a.txt", f"text {n}") for n in range(4)))
    session_id = await artifacts.find_session("s1")
    assert [one.version for one in await artifacts.list_versions(session_id, name="a.txt")] == [4, 3, 2, 1]


async def test_a_short_output_and_a_notice_are_no_artifacts(db: Database, agent: UUID) -> None:
    session_id = await run_tool(db, agent, "ok " * 50)
    async with db.transaction(agent) as tx:
        notice = Message(role="assistant", content="word " * 3 * OUTPUT_TOKENS, said_at=NOON, is_notice=True)
        await sessions.append(tx, [notice], session_id=session_id, ctx=teller(agent))
    assert await service(db, agent).list_versions(session_id) == []
