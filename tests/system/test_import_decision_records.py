"""Import of architecture decision records, in the forms of Nygard and of MADR, as decisions with status and links."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from newton.brain import decisions, queries
from newton.brain.decision_codec import DecisionReview
from newton.brain.drafts import TrackRecord
from newton.brain.queries import DecisionFilter
from newton.db.pool import Database
from newton.runtime.transfer.exports.document_lines import read_record_lines, read_records
from newton.runtime.transfer.exports.export_lines import JsonObject, convert_lines
from newton.runtime.transfer.import_source import ImportReport, ImportSource
from tests.support import NOON, teller
from tests.system.lines import importer
from tests.system.typed import ok, typed

RECORDS: Mapping[str, str] = {
    "0001-fire-with-wood.md": """# 1. Fire with wood

Date: 2020-01-05

## Status

Superseded by [3. Fire with gas](0003-fire-with-gas.md)

## Context

Wood is at hand.

## Decision

We fire with wood.

## Consequences

There is smoke.
""",
    "0002-keep-a-log.rst": """2. Keep a log
#############

Status
******
Accepted (2020-02-01)

Context
*******
Nobody remembers the cones.

Decision
********
Each firing is logged.
""",
    "0003-fire-with-gas.md": """---
status: accepted
date: 2021-03-04
tags: [kiln, energy]
---
# ADR-003: Fire with gas

## Context and Problem Statement

The neighbours complain about smoke.

## Considered Options

* [Gas](#gas)
* Electricity

## Decision Outcome

Chosen option: "Gas", because it is paid for.

### Consequences

* Good, because there is no smoke.

## Pros and Cons of the Options

### Electricity

Needs a new line.
""",
    "0004-sell-online.md": "# Sell online\n\n* Status: rejected\n* Date: 2021-05-01\n\n## Decision\n\nNo shop.\n",
    "README.md": "# Decisions\n\nStatus: these are the decisions of the pottery.",
    "template.md": "# NUMBER. TITLE\n\n## Status\n\nproposed\n\n## Decision\n\n...",
}


def write(folder: Path, records: Mapping[str, str] = RECORDS) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in records.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list_files(folder)


def list_files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def take(db: Database, agent: UUID, folder: Path) -> ImportReport:
    lines = list(read_record_lines(read_records(list_files(folder)), Counter()))
    return await importer(db, agent).run(ImportSource(format="x", read=lambda: convert_lines(lines)))


async def read_decisions(db: Database, agent: UUID) -> dict[str, tuple[str, tuple[str, ...], str | None]]:
    """Return the day, the tags and the outcome of each decision, by its description."""
    async with db.transaction(agent) as tx:
        found = [
            await queries.get_decision(tx, one.decision_id, agent_id=agent)
            for one in await queries.list_decisions(tx, DecisionFilter(), agent_id=agent, now=NOON)
        ]
    return {
        one.draft.description: (f"{one.draft.at:%Y-%m-%d}", one.draft.tags, one.review and one.review.verdict)
        for one in found
        if one.draft
    }


async def test_records_become_decisions_with_their_status(db: Database, agent: UUID, tmp_path: Path) -> None:
    write(tmp_path / "docs" / "adr")
    report = await take(db, agent, tmp_path / "docs" / "adr")
    assert (report.new, report.rejections) == (5, [])  # four decisions and a link
    assert await read_decisions(db, agent) == {
        "Superseded: Fire with wood: We fire with wood.": ("2020-01-05", ("superseded",), None),
        "Keep a log: Each firing is logged.": ("2020-02-01", ("accepted",), None),
        'Fire with gas: Chosen option: "Gas", because it is paid for.': (
            "2021-03-04",
            ("accepted", "kiln", "energy"),
            None,
        ),
        "Rejected: Sell online: No shop.": ("2021-05-01", ("rejected",), None),
    }
    async with db.transaction(agent) as tx:
        (row,) = await tx.fetch("select memory_id, other_id from memory.links where link = 'supersedes'")
        query = "select full_text from memory.memories where memory_id = $1"
        texts = {key: await tx.fetchval(query, row[key]) for key in ("memory_id", "other_id")}
    assert "Fire with gas" in str(texts["memory_id"]) and "Fire with wood" in str(texts["other_id"])
    for text in ("The neighbours complain", "Good, because there is no smoke", "Electricity", "Needs a new line"):
        assert text in str(texts["memory_id"]), "the whole record is kept"
    again = await take(db, agent, tmp_path / "docs" / "adr")
    assert (again.new, again.rejections) == (0, [])


async def test_a_changed_record_supersedes_its_earlier_version(db: Database, agent: UUID, tmp_path: Path) -> None:
    write(tmp_path / "adr")
    await take(db, agent, tmp_path / "adr")
    changed = RECORDS["0004-sell-online.md"].replace("rejected", "accepted").replace("No shop.", "There is a shop.")
    write(tmp_path / "adr", {"0004-sell-online.md": changed})
    report = await take(db, agent, tmp_path / "adr")
    assert (report.new, report.rejections) == (2, [])  # the decision, and the link to its earlier version
    known = await read_decisions(db, agent)
    assert known["Rejected: Sell online: No shop."][2] is None, "nobody judged it"
    assert known["Sell online: There is a shop."][1:] == (("accepted",), None)
    assert (await take(db, agent, tmp_path / "adr")).new == 0


UNDATED = "# Paint\n\n## Status\n\nAccepted\n\n## Decision\n\nThe door is {color}.\n"


async def test_the_time_of_a_file_changes_no_record(db: Database, agent: UUID, tmp_path: Path) -> None:
    files = write(tmp_path / "adr", {"0001-door.md": UNDATED.format(color="red"), "0002-c#-gate.md": UNDATED})
    for day in (20_000, 19_000):
        for file in files:
            os.utime(file, (day * 86_400, day * 86_400))
        report = await take(db, agent, tmp_path / "adr")
        assert (report.new, report.rejections) == (2 if day == 20_000 else 0, [])


async def test_a_record_may_return_to_an_earlier_text(db: Database, agent: UUID, tmp_path: Path) -> None:
    for color, new in (("red", 1), ("blue", 2), ("red", 3), ("red", 0), ("blue", 4), ("red", 5), ("red", 0)):
        write(tmp_path / "adr", {"0001-door.md": UNDATED.format(color=color)})
        report = await take(db, agent, tmp_path / "adr")
        assert (report.new, report.rejections) == (new, []), "a version, and its links to all earlier ones"


async def test_a_record_may_get_an_earlier_date(db: Database, agent: UUID, tmp_path: Path) -> None:
    for date, new in (("", 1), ("Date: 2019-01-02\n", 2), ("Date: 2018-01-02\n", 3), ("Date: 2018-01-02\n", 0)):
        write(tmp_path / "adr", {"0001-door.md": UNDATED.replace("\n\n## Status", f"\n\n{date}\n## Status")})
        report = await take(db, agent, tmp_path / "adr")
        assert (report.new, report.rejections) == (new, [])


async def test_a_reviewed_record_is_not_part_of_the_calibration(db: Database, agent: UUID, tmp_path: Path) -> None:
    write(tmp_path / "adr")
    await take(db, agent, tmp_path / "adr")
    async with db.transaction(agent) as tx:
        one, *_ = await queries.list_decisions(tx, DecisionFilter(), agent_id=agent, now=NOON)
        await decisions.review(
            tx, one.decision_id, DecisionReview(verdict="success", at=NOON, how="hand"), ctx=teller(agent_id=agent)
        )
        assert await queries.list_reviewed_decisions(tx, agent_id=agent) == []
        category = "architecture"
        assert await queries.get_track_record(tx, agent_id=agent, category=category, now=NOON) == TrackRecord()


async def test_a_link_names_the_decision_with_exactly_its_ref(db: Database, agent: UUID) -> None:
    """A program may use "#" in its own refs."""
    line = {"type": "decision", "confidence": 0.5, "at": "2020-01-01T00:00:00Z"}
    lines: list[tuple[str, JsonObject]] = [
        ("1", {**line, "ref": ref, "description": ref}) for ref in ("PR", "PR#12", "new")
    ]
    lines.append(("2", {"type": "decision_link", "source": "new", "link": "supersedes", "target": "PR"}))
    report = await importer(db, agent).run(ImportSource(format="x", read=lambda: convert_lines(lines)))
    assert (report.new, report.rejections) == (4, [])
    async with db.transaction(agent) as tx:
        query = "select m.ref from memory.links as l join memory.memories as m on m.memory_id = l.other_id"
        assert await tx.fetchval(f"{query} where l.link = 'supersedes'") == "PR"


# A status of record 1, and its links to other records: "<" is from the other one.
STATUSES: dict[str, tuple[str, set[str]]] = {
    "Accepted by the board, supersedes ADR-2": ("accepted", {"supersedes 2"}),
    "Superseded by ADR-2": ("superseded", {"<supersedes 2"}),
    "Superseded (by the board) by ADR-2": ("superseded", {"<supersedes 2"}),
    "Superseded by [2. Replaces wood](0002-x.md)": ("superseded", {"<supersedes 2"}),
    "Accepted, supersedes ADR-2, amended by ADR-3": ("accepted", {"supersedes 2", "<relates 3"}),
    "Accepted\n\nRequired by ADR-2": ("accepted", {"<depends_on 2"}),
    "Accepted\n\nDepends on ADR-2, approved by Ana": ("accepted", {"depends_on 2"}),
    "Proposed 2020-01-01\n\nAccepted 2020-02-01": ("accepted", set()),
    "* 2020-01-01: proposed\n* 2020-02-01: rejected\n* 2020-03-01: accepted": ("accepted", set()),
    "Proposed 2020-01-01 / Accepted 2020-02-01": ("accepted", set()),
    "Accepted 2020-01-01\n\nDeprecated 2021-01-01": ("deprecated", set()),
    "Superseded by ADR-2\n\nAccepted 2020-02-01": ("superseded", {"<supersedes 2"}),
    "Accepted\n\nThe migration is pending.": ("accepted", set()),
}


@pytest.mark.parametrize(("status", "expected"), STATUSES.items())
def test_a_status_tells_state_and_links(tmp_path: Path, status: str, expected: tuple[str, set[str]]) -> None:
    text = "# Title\n\nDate: 2020-01-01\n\n## Status\n\n{}\n\n## Decision\n\nYes."
    texts = {f"000{number}-x.md": text.format(status if number == 1 else "Accepted") for number in (1, 2, 3)}
    records = read_records(write(tmp_path / "adr", texts))
    numbers = {record.series: record.number for record in records}
    lines = [line for _, line in read_record_lines(records, Counter()) if not isinstance(line, Exception)]
    found = set[str]()
    for line in lines:
        if line["type"] == "decision_link" and line["source"] != line["target"]:
            source, target = numbers[str(line["source"])], numbers[str(line["target"])]
            found.add(f"{line['link']} {target}" if source == 1 else f"<{line['link']} {source}")
    assert (records[0].status, found) == expected


NOTES = {
    "2024-05-01 daily.md": "---\nstatus: draft\n---\n# Today\n\n## Context\n\nThe kiln was cold.",
    "03-chapter.md": "# Chapter\n\n## Decision\n\nShe decided to leave.\n\n## Context\n\nIt rained.",
}


def test_notes_with_a_number_are_no_records(tmp_path: Path) -> None:
    assert read_records(write(tmp_path / "vault", NOTES)) == []


def test_links_by_number_and_to_missing_records(tmp_path: Path) -> None:
    texts = {
        "ADR-007-glaze.md": "# Glaze\n\n## Status\n\nSuperseded by ADR-009, 2022-01-01\n\n## Decision\n\nYes.",
        "ADR-009-no-glaze.md": "# None\n\n## Status\nAccepted\n\nSupersedes ADR-007\n\nAmends ADR-8\n\n## Decision\nNo",
    }
    left_out: Counter[str] = Counter()
    lines = [
        dict(line)
        for _, line in read_record_lines(read_records(write(tmp_path / "x", texts)), left_out)
        if not isinstance(line, Exception)
    ]
    links = [(line["source"], line["link"], line["target"]) for line in lines if line["type"] == "decision_link"]
    old, new = (str(line["ref"]).partition("#")[0] for line in lines if line["type"] == "decision")
    assert set(links) == {(old, "supersedes", old), (new, "supersedes", new), (new, "supersedes", old)}
    assert dict(left_out) == {"links to records that are not there": 1}


def test_a_folder_with_records_and_other_documents_is_previewed_and_imported(home: Path) -> None:
    write(home / "project" / "docs" / "adr")
    (home / "project" / "notes.md").write_text("# Notes\n\nThe kiln is in the yard.", encoding="utf-8")
    before = sorted(str(path) for path in home.rglob("*"))
    preview = json.loads(ok(typed(home, "import", "project", "--preview", "--json")))
    assert (preview["documents"], preview["decisions"]) == (3, 4)
    assert sorted(str(path) for path in home.rglob("*")) == before
    report = json.loads(ok(typed(home, "import", "project", "--json")))
    assert (report["documents"], report["decisions"], report["imported"]) == (3, 4, 5)
    again = json.loads(ok(typed(home, "import", "project", "--json")))
    assert (again["new"], again["imported"], again["rejected"]) == (0, 0, [])


@pytest.mark.slow
def test_a_record_that_cannot_be_stored_is_named_in_the_preview_and_in_the_report(home: Path) -> None:
    records = home / "records" / "adr"
    long = UNDATED.format(color="red") + "\n## Consequences\n\n" + "Paint, and paint again.\n" * 60_000
    write(records, {"0001-door.md": UNDATED.format(color="red"), "0002-long.md": long})
    outputs = [typed(home, "import", "records", *more, "--json") for more in (["--preview"], [])]
    assert [one.returncode for one in outputs] == [2, 2]
    preview, report = (json.loads(one.stdout) for one in outputs)
    assert [one["place"] for one in preview["rejected"]] == [str(Path("records", "adr", "0002-long.md"))]
    assert preview["rejected"] == report["rejected"][:1] and "1,000,000" in preview["rejected"][0]["reason"]
    assert (preview["decisions"], report["decisions"], report["documents"]) == (1, 1, 0)
