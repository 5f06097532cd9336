"""Import of architecture decision records, in the forms of Nygard and of MADR, as decisions with status and links."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from newton.brain import queries
from newton.brain.queries import DecisionFilter
from newton.db.pool import Database
from newton.runtime.transfer.exports.decision_records import read_record_lines, read_records
from newton.runtime.transfer.exports.export_lines import convert_lines
from newton.runtime.transfer.import_source import ImportSource
from newton.runtime.transfer.importer import ImportReport
from tests.support import NOON
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
        "Superseded: Fire with wood: We fire with wood.": ("2020-01-05", ("superseded",), "partial"),
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
    decisions = await read_decisions(db, agent)
    assert decisions["Rejected: Sell online: No shop."][2] == "partial"
    assert decisions["Sell online: There is a shop."][1:] == (("accepted",), None)
    assert (await take(db, agent, tmp_path / "adr")).new == 0


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
    assert (again["new"], again["imported"], again["rejections"]) == (0, 0, [])
