"""Documents as passages: taken in again, only what changed is replaced."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from newton.db.pool import Tx
from newton.errors import NotFoundError
from newton.heart import documents
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource, IngestResult
from newton.memory.forgetting import forget
from newton.memory.representations import one_line, to_bullet
from tests.support import ANA, count, teller

GUIDE = DocumentSource(ref="/guide.md", title="The guide", format="markdown")


def chunks(*texts: str) -> list[TextChunk]:
    return [TextChunk("Part", text, count(text)) for text in texts]


async def take(tx: Tx, *texts: str, source: DocumentSource = GUIDE) -> IngestResult:
    return await documents.replace_passages(tx, source, chunks(*texts), ctx=teller())


async def current(tx: Tx) -> list[str]:
    rows = await tx.fetch(
        "select m.full_text from heart.passages as p join memory.memories as m using (agent_id, memory_id)"
        " where m.state = 'ACTIVE' order by p.position"
    )
    return [row["full_text"] for row in rows]


async def test_the_same_document_again_changes_nothing(tx: Tx) -> None:
    assert await take(tx, "one", "two") == IngestResult(2, 0, 0)
    before = await tx.fetch("select * from memory.memories order by memory_id")
    assert await take(tx, "one", "two") == IngestResult(0, 2, 0)
    assert await tx.fetch("select * from memory.memories order by memory_id") == before


async def test_only_the_changed_passage_is_replaced_and_the_rest_are_the_memories_they_were(tx: Tx) -> None:
    await take(tx, "one", "two", "three")
    kept = await tx.fetchval("select memory_id from memory.memories where full_text = 'three'")
    assert await take(tx, "one", "new two", "and more", "three") == IngestResult(2, 2, 1)
    assert await current(tx) == ["one", "new two", "and more", "three"]
    assert await tx.fetchval("select memory_id from memory.memories where full_text = 'three'") == kept
    row = await tx.fetchrow("select event, reason from memory.transitions")
    assert row is not None and tuple(row) == ("replaced", "the document no longer contains it")


async def test_a_passage_that_comes_back_is_the_one_that_was_there(tx: Tx) -> None:
    await take(tx, "one", "two")
    await take(tx, "one")
    assert await take(tx, "one", "two") == IngestResult(0, 2, 0)
    assert await current(tx) == ["one", "two"]
    assert await tx.fetchval("select count(*) from memory.memories") == 2


async def test_the_same_words_twice_and_in_two_documents_are_passages_of_their_own(tx: Tx) -> None:
    assert await take(tx, "same", "same") == IngestResult(2, 0, 0)
    other = DocumentSource(ref="/other.md", title="The guide", format="markdown")
    assert await take(tx, "same", source=other) == IngestResult(1, 0, 0)
    assert await take(tx, "same") == IngestResult(0, 1, 1)
    known = await documents.list_documents(tx, agent_id=ANA)
    assert [(d.ref, d.passages) for d in known] == [("/guide.md", 1), ("/other.md", 1)]


@pytest.mark.slow
async def test_of_two_hundred_documents_taken_in_again_only_the_ten_that_changed_change(tx: Tx) -> None:
    sources = [DocumentSource(ref=f"/{n}.md", title=f"Document {n}", format="markdown") for n in range(200)]
    for n, source in enumerate(sources):
        await take(tx, f"begin {n}", f"middle {n}", f"end {n}", source=source)
    rows = await tx.fetch("select memory_id, full_text, state from memory.memories")
    before = {row["memory_id"]: tuple(row) for row in rows}
    taken = [
        await take(tx, f"begin {n}", f"middle {n}{' changed' if n % 20 == 7 else ''}", f"end {n}", source=source)
        for n, source in enumerate(sources)
    ]
    assert [n for n, t in enumerate(taken) if t != IngestResult(0, 3, 0)] == list(range(7, 200, 20))
    assert {t for n, t in enumerate(taken) if n % 20 == 7} == {IngestResult(1, 2, 1)}
    after = {
        r["memory_id"]: tuple(r) for r in await tx.fetch("select memory_id, full_text, state from memory.memories")
    }
    changed = {memory_id for memory_id in before if after[memory_id] != before[memory_id]}
    assert (len(changed), len(after) - len(before)) == (10, 10)


async def test_what_came_from_the_web_is_released_when_a_person_takes_the_document_in(tx: Tx) -> None:
    await documents.replace_passages(tx, GUIDE, chunks("one", "two"), ctx=teller(trust="web"))
    assert await tx.fetchval("select bool_and(quarantined) from memory.memories")
    await documents.replace_passages(tx, GUIDE, chunks("one", "two"), ctx=teller(trust="web"))
    assert await tx.fetchval("select bool_and(quarantined) from memory.memories"), "the web cannot vouch for itself"
    assert await take(tx, "one", "two") == IngestResult(0, 2, 0)
    assert not await tx.fetchval("select bool_or(quarantined) from memory.memories")
    assert await tx.fetchval("select bool_and(trust = 'web') from memory.memories"), "whose words they are stays"


async def test_a_document_is_found_by_its_ref_its_id_or_six_digits_of_its_end(tx: Tx) -> None:
    await take(tx, "one")
    (listed,) = await documents.list_documents(tx, agent_id=ANA)
    digits = listed.document_id.hex
    for ref in (GUIDE.ref, str(listed.document_id), digits[-6:], digits[-8:].upper()):
        found = await documents.read_document(tx, ref, agent_id=ANA)
        assert (found.document_id, [one.text for one in found.passages]) == (listed.document_id, ["one"])
    for ref in (digits[-5:], "------", "", "guide"):
        with pytest.raises(NotFoundError, match="There is no document"):
            await documents.read_document(tx, ref, agent_id=ANA)


async def test_a_passage_that_moves_keeps_its_memory_and_shows_its_new_lines(tx: Tx) -> None:
    # S004-7
    words = "The quay is of granite, and the ferry that is called Artemis leaves from it each day at noon. " * 12
    before = TextChunk("Quay", words, count(words), "lines 10-12")
    assert await documents.replace_passages(tx, GUIDE, [before], ctx=teller()) == IngestResult(1, 0, 0)
    (row,) = await tx.fetch("select * from memory.memories")
    assert row["summary"].startswith("[The guide, lines 10-12] The quay") and row["micro"].startswith("[The guide] The")
    moved = before._replace(location="lines 34-36")
    assert await documents.replace_passages(tx, GUIDE, [moved], ctx=teller()) == IngestResult(0, 1, 0)
    (after,) = await tx.fetch("select * from memory.memories")
    assert (after["memory_id"], after["summary_tokens"]) == (row["memory_id"], row["summary_tokens"])
    assert after["summary"].startswith("[The guide, lines 34-36] The quay")
    assert count(to_bullet(after["summary"])) == after["summary_tokens"]
    assert await tx.fetchval("select location from heart.passages") == "lines 34-36"
    longer = before._replace(location="lines 134-136")
    assert await documents.replace_passages(tx, GUIDE, [longer], ctx=teller()) == IngestResult(1, 0, 1)
    sizes = await tx.fetch("select summary, summary_tokens, full_tokens, full_text, prefix_length from memory.memories")
    for one in sizes:
        assert count(to_bullet(one["summary"])) == one["summary_tokens"]
        prefix = one["summary"][: one["prefix_length"]]
        assert count(to_bullet(prefix + one_line(one["full_text"]))) == one["full_tokens"]


async def test_a_passage_of_a_dated_text_has_its_date(tx: Tx) -> None:
    sent = datetime(2024, 3, 1, 9, tzinfo=UTC)
    chunk = TextChunk("Late", "The ferry is late.", 5, "message 2", sent)
    await documents.replace_passages(tx, GUIDE, [chunk], ctx=teller())
    row = await tx.fetchrow("select occurred_at, summary from memory.memories")
    assert row is not None
    assert tuple(row) == (sent, "[The guide, message 2, 2024-03-01] The ferry is late.")


async def test_a_file_that_was_read_is_unchanged_until_a_passage_is_missing(tx: Tx) -> None:
    source = replace(GUIDE, source_hash=b"x" * 32)
    await documents.replace_passages(tx, source, chunks("one", "two"), ctx=teller())
    assert await documents.count_unchanged(tx, source, ctx=teller()) == 2
    assert await documents.count_unchanged(tx, replace(source, source_hash=b"y" * 32), ctx=teller()) is None
    assert await documents.count_unchanged(tx, replace(source, ref="/other.md"), ctx=teller()) is None
    memory_id = await tx.fetchval("select memory_id from memory.memories where full_text = 'one'")
    await forget(tx, [memory_id], derived=True, reason="test", ctx=teller())
    assert await documents.count_unchanged(tx, source, ctx=teller()) is None


async def test_a_quarantined_file_is_read_again_by_a_person(tx: Tx) -> None:
    source = replace(GUIDE, source_hash=b"x" * 32)
    await documents.replace_passages(tx, source, chunks("one"), ctx=replace(teller(), trust="web"))
    assert await documents.count_unchanged(tx, source, ctx=replace(teller(), trust="web")) == 1
    assert await documents.count_unchanged(tx, source, ctx=teller()) is None
