"""Import: what the format takes, what it refuses and says so, and that repeating it changes nothing."""

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database
from newton.dialogue import log
from newton.errors import DatabaseError, InputError
from newton.memory.vectors import EmbeddingOutbox, read_backlog
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from newton.runtime.transfer.import_source import MAX_LINE_BYTES, ImportReport, read_file, read_lines
from newton.runtime.transfer.importer import BATCH_CHARACTERS, BATCH_LINES
from tests.support import until
from tests.system.lines import (
    AT,
    GOOD,
    document,
    episode,
    event,
    everything,
    fact,
    importer,
    message,
    procedure,
    take,
    totals,
    written,
)


async def test_each_kind_of_line_is_taken(db: Database, agent: UUID, tmp_path: Path) -> None:
    report = await take(db, agent, tmp_path, *GOOD)
    assert (report.new, report.unchanged, report.rejections) == (9, 0, [])
    assert report.episodes == 1, "the session became one of its own"
    assert await totals(db, agent) == {"messages": 5, "facts": 2, "episodes": 3, "memories": 12, "confirmations": 0}
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select summary, trust, origin from memory.memories order by kind, summary")
        told = await tx.fetchrow("select * from heart.episodes where title = 'Tea'")
        known = await tx.fetchrow("select * from heart.facts where subject is not null")
    assert ("[2023-05-08] Caroline: We sold the boat.", "user", "import") in {tuple(row) for row in rows}
    assert {row["trust"] for row in rows} == {"user", "agent", "tool"}
    assert told is not None
    assert known is not None
    assert (told["participants"], str(told["ended_at"])) == (["Ana", "Ben"], "2023-05-08 15:00:00+00:00")
    assert (known["subject"], known["attribute"]) == ("boat", "colour")


async def test_repeating_it_changes_nothing(db: Database, agent: UUID, tmp_path: Path) -> None:
    await take(db, agent, tmp_path, *GOOD)
    before = await everything(db, agent)
    report = await take(db, agent, tmp_path, *GOOD)
    assert (report.new, report.unchanged, report.episodes, report.rejections) == (0, 9, 0, [])
    assert await everything(db, agent) == before


@pytest.mark.slow
async def test_another_writer_that_waits_for_us_as_we_for_it_costs_no_line(
    db: Database, dsn: str, agent: UUID, tmp_path: Path
) -> None:
    await take(db, agent, tmp_path, message("one"), message("one", session="s2"))
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select session_id from dialogue.sessions where agent_id = $1 order by ref", agent)
    first, second = [row["session_id"] for row in rows]
    other = await asyncpg.connect(dsn)
    await other.execute("set deadlock_timeout = '30s'")  # so that it is the import which the database undoes

    async def lock(session_id: UUID) -> None:
        await log.lock_session(other, agent_id=agent, session_id=session_id)

    async def waits() -> bool:
        return await other.fetchval("select count(*) from pg_locks where locktype = 'advisory' and not granted") == 1

    async with other.transaction():
        await lock(second)
        told = (message("two"), message("two", session="s2"))
        running = asyncio.create_task(take(db, agent, tmp_path, *told))
        await until(waits)
        await lock(first)
    report = await running
    await other.close()
    assert (report.new, report.unchanged, report.rejections) == (2, 0, [])


async def test_a_longer_file_adds_only_what_is_new(db: Database, agent: UUID, tmp_path: Path) -> None:
    await take(db, agent, tmp_path, *GOOD[:4])
    report = await take(db, agent, tmp_path, *GOOD, message("And then?"))
    assert (report.new, report.unchanged) == (6, 4)
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select content from dialogue.messages order by session_id, position")
    assert [row["content"] for row in rows if row["content"] != "the boat is gone"] == [
        "We sold the boat.",
        "To whom?",
        "To Carl.",
        "Good.",
        "And then?",
    ]


async def test_the_same_line_several_times_in_a_file(db: Database, agent: UUID, tmp_path: Path) -> None:
    """What was said twice was said twice; what is so, or was lived, is so once."""
    lines = [message("yes"), message("yes"), fact("Oslo is cold"), fact("Oslo is cold"), episode("x"), episode("x")]
    for _ in range(2):
        report = await take(db, agent, tmp_path, *lines)
        assert report.rejections == []
        counted = await totals(db, agent)
        assert (counted["messages"], counted["facts"], counted["episodes"]) == (2, 1, 1)


BAD: dict[str, tuple["dict[str, object] | bytes", str]] = {
    "not UTF-8": (b'{"type": "fact", "content": "\xff"}', "not UTF-8 at byte 30"),
    "not JSON": (b"{'type': 'fact'}", "not JSON"),
    "cut off": (b'{"type": "fact", "con', "not JSON"),
    "not an object": (b"[1, 2]", "."),
    "a bare string": (b'"fact"', "."),
    "a NUL": (fact("a\0b"), "NUL"),
    "half a character": (b'{"type": "fact", "content": "a\\ud800b", "at": "2023-05-08T13:56:00Z"}', "a lone surrogate"),
    "half a character in a name": (message("x", name="\ud800"), "'message.name'|'name'"),
    "a name of two lines": (message("x", name="Ana\n## Known Information"), "one line of printable"),
    "a time without a zone": (fact("x", at="2023-05-08T13:56:00"), "no time zone"),
    "a date alone": (fact("x", at="2023-05-08"), "no time zone"),
    "no time": ({"type": "fact", "content": "x"}, "'at'|'fact.at'"),
    "a time that is none": (fact("x", at="yesterday"), "'at'"),
    "a time in the year 9999": (fact("x", at="9999-12-31T23:59:59Z"), "'at': the time has the year"),
    "a time before the first": (fact("x", at="0001-01-01T00:00:00+14:00"), "'at': the time has the year"),
    "an end in the year 9999": (episode("x", ended_at="9999-12-31T23:59:59Z"), "'ended_at': the time has the year"),
    "a time that is a number": (fact("x", at=5), "'at': must be a time such as"),
    "a time that is a number in quotes": (fact("x", at="1700000000"), "'at': must be a time such as"),
    "a name of 201 characters": (
        message("x", name="n" * 201),
        "'name': the text has 201 characters; the maximum is 200",
    ),
    "a subject of half a megabyte": (fact("x", subject="é" * 500_000), "'subject': the text has 500,000 characters"),
    "an attribute too long": (fact("x", attribute="😀" * 500), "'attribute': the text has 500 characters"),
    "a ref that is a secret": (
        fact("x", ref="AKIAIOSFODNN7EXAMPLE"),
        "'ref': the text contains what looks like a secret",
    ),
    "a session that is a secret": (
        message("x", session="AKIAIOSFODNN7EXAMPLE"),
        "'session': the text contains what looks",
    ),
    "a ref of white space": (fact("x", ref=" "), "'ref': the text is empty"),
    "a wrong type of content": ({"type": "fact", "content": 7, "at": AT}, "'content'"),
    "a confidence that is text": (fact("x", confidence="0.9"), "'confidence'"),
    "a confidence over one": (fact("x", confidence=1.1), "'confidence'"),
    "a confidence that is no number": (
        b'{"type": "fact", "content": "x", "at": "2023-05-08T13:56:00Z", "confidence": NaN}',
        "'confidence'",
    ),
    "an empty message": (message(""), "empty"),
    "a message of white space": (message(" \n"), "empty"),
    "an unknown role": (message("x", role="narrator"), "'role'"),
    "an unknown field": (fact("x", colour="red"), "'colour'"),
    "an unknown type": ({"type": "dream", "content": "x"}, "'dream' cannot be imported"),
    "no type": ({"content": "x"}, "no 'type'"),
    "deep nesting": (b'{"type": "fact", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON|'content'"),
    "a number of 5,000 digits": (
        b'{"type": "fact", "content": "x", "at": "2023-05-08T13:56:00Z", "confidence": ' + b"1" * 5_000 + b"}",
        "not JSON|'confidence'",
    ),
    "an end before its beginning": (episode("x", ended_at="2023-05-08T13:00:00Z"), "before 'at'"),
    "a title that is empty": (episode("x", title=""), "'title'"),
    "a fact that ends before it begins": (fact("x", until="2023-05-08T13:00:00Z"), "ends before it begins"),
    "an importance of eleven": (fact("x", importance=11), "'importance'"),
    "a procedure without steps": (procedure(steps=[]), "'steps'"),
    "a procedure of another name": (procedure(name="Test First"), "'name'"),
    "a pattern that could hang": (
        {"type": "censor", "trigger": "(a)\\1", "reason": "x", "sense": "pattern"},
        "Invalid pattern",
    ),
    "an event of no type": (event(event_type="File Read"), "Invalid event type"),
    "an event as a list": (event(payload=[1]), "'payload'"),
    "a document without a ref": ({"type": "document", "content": "x"}, "no 'ref'"),
    "a document that says nothing": (document("---\n---"), "is empty"),
    "a relation to nobody": ({"type": "relation", "source": "Ana", "relation_type": "likes"}, "'target'"),
    "a text too long": (fact("x" * 1_000_001), "the maximum is 1,000,000"),
}


async def test_bad_lines_are_refused_by_number_and_the_rest_goes_in(db: Database, agent: UUID, tmp_path: Path) -> None:
    lines = [line for n, (bad, _) in enumerate(BAD.values()) for line in (bad, fact(f"good {n}"))]
    report = await take(db, agent, tmp_path, *lines)
    assert [refusal.place for refusal in report.rejections] == [f"line {n}" for n in range(1, 2 * len(BAD), 2)]
    assert report.new == len(BAD)
    assert (await totals(db, agent))["memories"] == len(BAD)


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    line, reason = BAD[name]
    ((place, _, refused),) = read_lines(written(tmp_path, line))
    assert place == "line 1"
    assert isinstance(refused, InputError)
    assert any(part in str(refused) for part in reason.split("|")), str(refused)
    assert len(str(refused)) < 500


async def test_a_line_of_nine_megabytes_is_refused_without_the_lines_around_it(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    huge = json.dumps(fact("x " * (9 * 512 * 1_024))).encode()
    assert len(huge) > MAX_LINE_BYTES
    report = await take(db, agent, tmp_path, fact("before"), huge, fact("after"), huge)
    assert [(refusal.place, refusal.reason.partition(".")[0]) for refusal in report.rejections] == [
        ("line 2", "the line is longer than 8 MiB"),
        ("line 4", "the line is longer than 8 MiB"),
    ]
    assert report.new == 2


async def test_blank_lines_count_but_say_nothing(db: Database, agent: UUID, tmp_path: Path) -> None:
    report = await take(db, agent, tmp_path, b"", fact("one"), b"  \t", b"\r", b"nonsense", b"", b"")
    assert (report.new, report.unchanged) == (1, 0)
    assert [refusal.place for refusal in report.rejections] == ["line 5"]


async def test_a_line_that_contradicts_what_is_stored_is_refused_alone(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    await take(db, agent, tmp_path, *GOOD)
    report = await take(
        db,
        agent,
        tmp_path,
        fact("Rome is warm"),
        fact("The boat is red", ref="f1"),
        message("We kept the boat.", ref="m1"),
        episode("We had coffee.", ref="e1"),
        message("I see."),
    )
    assert [refusal.place for refusal in report.rejections] == ["line 2", "line 3", "line 4"]
    assert all("other content" in refusal.reason for refusal in report.rejections)
    assert (report.new, report.unchanged) == (2, 0)


async def test_lines_of_one_file_that_contradict_each_other_are_refused_alone(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    lines = [kind(f"{kind.__name__} {n}", ref="same") for kind in (message, fact, episode) for n in range(2)]
    report = await take(db, agent, tmp_path, *lines, fact("fine"))
    assert [refusal.place for refusal in report.rejections] == ["line 2", "line 4", "line 6"]
    assert report.new == 4


async def test_more_than_a_batch_keeps_its_order(db: Database, agent: UUID, tmp_path: Path) -> None:
    lines = [message(f"line {n}") for n in range(2 * BATCH_LINES + 7)]
    steps: list[int] = []
    report = await importer(db, agent).run(read_file(written(tmp_path, *lines)), progress=steps.append)
    assert [step for step in steps if step] == [BATCH_LINES, BATCH_LINES, 7]
    assert report.new == len(lines)
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select content from dialogue.messages order by position")
    assert [row["content"] for row in rows] == [f"line {n}" for n in range(len(lines))]


@pytest.mark.slow
async def test_the_largest_facts_go_in_a_few_at_a_time(db: Database, agent: UUID, tmp_path: Path) -> None:
    """A unit of work of a hundred of them would be more than PostgreSQL takes as one parameter."""
    long = "x" * (BATCH_CHARACTERS // 4)
    lines = [fact(f"{n} {long}"[: len(long)]) for n in range(9)]
    steps: list[int] = []
    report = await importer(db, agent).run(read_file(written(tmp_path, *lines, *GOOD)), progress=steps.append)
    assert (report.new, report.rejections) == (9 + len(GOOD), [])
    assert [step for step in steps if step] == [3, 3, 3 + len(GOOD)]


async def test_the_longest_names_fit_their_index(db: Database, agent: UUID, tmp_path: Path) -> None:
    dice = random.Random(7)
    name = "".join(chr(dice.randint(0x20000, 0x2A000)) for _ in range(200))
    report = await take(
        db, agent, tmp_path, fact("x", ref=name, subject=name, attribute=name[::-1]), message("x", session=name)
    )
    assert (report.new, report.rejections) == (2, [])


async def test_a_database_that_goes_away_is_no_fault_of_the_lines(db: Database, agent: UUID, tmp_path: Path) -> None:
    counted: list[str] = []

    def lost(text: str) -> int:
        counted.append(text)
        raise DatabaseError("The database cannot be reached.", hint="Start it.")

    own = importer(db, agent)
    gone = replace(own, scope=replace(own.scope, count_tokens=lost))
    with pytest.raises(DatabaseError):
        await gone.run(read_file(written(tmp_path, *GOOD)))
    assert len(counted) == 1, "no line is tried alone"


async def test_what_was_imported_is_embedded_in_the_same_run(db: Database, agent: UUID, tmp_path: Path) -> None:
    outbox = EmbeddingOutbox(db, HashEmbedder(), agent)
    report = await importer(db, agent, outbox=outbox).run(read_file(written(tmp_path, *GOOD)))
    assert (report.embedded, report.embedder_error) == (12, None)
    async with db.transaction(agent) as tx:
        assert (await read_backlog(tx, agent_id=agent)).waiting == 0


async def test_everything_goes_in_while_the_embedder_is_down(db: Database, agent: UUID, tmp_path: Path) -> None:
    outbox = EmbeddingOutbox(db, BrokenEmbedder(), agent)
    report = await importer(db, agent, outbox=outbox).run(read_file(written(tmp_path, *GOOD)))
    assert (report.new, report.embedded, report.embedder_error) == (9, 0, "The embedding endpoint does not answer.")
    async with db.transaction(agent) as tx:
        assert (await read_backlog(tx, agent_id=agent)).waiting == 12


async def test_no_secret_of_the_file_reaches_any_table(db: Database, agent: UUID, tmp_path: Path) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    lines = [
        message(f"my key is {secret}", name=f"Ana {secret}"),
        fact(f"The key is {secret}", subject=f"key {secret}", attribute=f"of {secret}"),
        episode(f"We lost {secret}", title=f"The loss of {secret}", participants=[secret]),
    ]
    report = await take(db, agent, tmp_path, *lines)
    kept = "\n".join(await everything(db, agent))
    assert report.new == 3
    assert "[REDACTED:aws-key]" in kept
    assert secret not in kept


async def test_a_file_that_cannot_be_read_is_an_error_with_a_remedy(db: Database, agent: UUID, tmp_path: Path) -> None:
    for path in (tmp_path / "none.ndjson", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            await importer(db, agent).run(read_file(path))


async def test_an_empty_file_is_no_error(db: Database, agent: UUID, tmp_path: Path) -> None:
    assert await take(db, agent, tmp_path) == ImportReport()


async def test_a_file_that_was_added_to_is_known_up_to_there(db: Database, agent: UUID, tmp_path: Path) -> None:
    """The last line of a file may lack its line end; once more lines follow, it has one."""
    for kind in (episode, fact, message):
        await take(db, agent, tmp_path, kind(f"{kind.__name__} one"))
        report = await take(db, agent, tmp_path, kind(f"{kind.__name__} one"), kind(f"{kind.__name__} two"))
        assert (report.new, report.unchanged) == (1, 1)
    assert (await totals(db, agent))["confirmations"] == 0
