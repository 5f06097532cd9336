"""The table of changes, the database's constraint and docs/lifecycle.md say the same."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from newton.db.pool import Tx
from newton.memory.memory import ARCHIVED, KINDS, PAST_STATES, past_reason
from newton.memory.store import ALLOWED_TRANSITIONS
from newton.settings import Settings
from tests.support import ANA

DOC = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
Told = tuple[str, str, str, str]


def sections() -> Iterator[tuple[list[str], str]]:
    """The kinds each section of the page is about, and its text."""
    for section in re.split(r"^## ", DOC, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        kinds = _listed(heading.lower())
        if set(kinds) <= set(KINDS):
            yield kinds, text


def rows(text: str) -> Iterator[dict[str, str]]:
    """Each row of the tables in the text, by the names of its columns."""
    names: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            names = []
        elif not names:
            names = cells
        elif set(line) - set("|-"):
            yield dict(zip(names, cells, strict=True))


def _listed(cell: str) -> list[str]:
    return cell.split(", ")


def told() -> Iterator[Told]:
    for kinds, text in sections():
        for row in rows(text):
            of = _listed(row["kind"]) if "kind" in row else kinds
            for kind, before, after in product(of, _listed(row["from"]), _listed(row["to"])):
                yield kind, before, row["event"], after


def initial() -> dict[str, str]:
    """The state in which a memory of each kind begins, as the page says it."""
    begins = [(kinds, re.search(r"initial state is ([A-Z]+)", text)) for kinds, text in sections()]
    return {kind: match[1] for kinds, match in begins if match for kind in kinds}


async def allowed(tx: Tx) -> dict[str, set[str]]:
    """The states that the constraint of memory.memories allows for each kind, of all that it or anybody names."""
    check = await tx.fetchval(
        "select pg_get_expr(conbin, conrelid) from pg_constraint"
        " where conrelid = 'memory.memories'::regclass and conname = 'memories_state_check'"
    )
    named = set(re.findall(r"'([A-Z]+)'", check)) | {
        state for c in ALLOWED_TRANSITIONS for state in (c.from_state, c.to_state)
    }
    found = await tx.fetch(
        f"select kind, state from unnest($1::text[]) as kind cross join unnest($2::text[]) as state where {check}",
        [*KINDS, *re.findall(r"'([a-z]+)'", check)],
        sorted(named),
    )
    states: defaultdict[str, set[str]] = defaultdict(set)
    for row in found:
        states[row["kind"]].add(row["state"])
    return states


async def test_the_database_allows_the_states_of_the_table_and_no_other(tx: Tx) -> None:
    # S002-16, S002-17, S002-18, S002-19
    named: defaultdict[str, set[str]] = defaultdict(set)
    for kind, state in initial().items():
        named[kind].add(state)
    for change in ALLOWED_TRANSITIONS:
        named[change.kind] |= {change.from_state, change.to_state}
    assert await allowed(tx) == named
    assert set(named) == set(KINDS)


def test_the_page_tells_every_change_once_and_is_short() -> None:
    listed = list(told())
    assert sorted(listed) == sorted(tuple(change) for change in ALLOWED_TRANSITIONS)
    assert len(DOC.splitlines()) <= 150
    # every state is reached from the first one
    reached = set(initial().items())
    for _ in ALLOWED_TRANSITIONS:
        reached |= {(c.kind, c.to_state) for c in ALLOWED_TRANSITIONS if (c.kind, c.from_state) in reached}
    assert reached >= {(c.kind, state) for c in ALLOWED_TRANSITIONS for state in (c.from_state, c.to_state)}


def test_the_page_names_settings_that_there_are_and_all_that_tune_a_change() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(row.get("setting", "") for _, text in sections() for row in rows(text))))
    tuning = {
        "core_fact_",
        "max_facts_",
        "max_events",
        "max_entities",
        "max_relations",
        "max_procedures",
        "max_passages",
        "fact_",
        "episode_",
        "procedure_",
        "censor_",
        "convo_summary_every_",
    }
    assert named == {name for name in Settings.model_fields if name.startswith(tuple(tuning))}


async def test_code_and_database_agree_on_what_is_past(tx: Tx) -> None:
    states = sorted({change.to_state for change in ALLOWED_TRANSITIONS} | {*PAST_STATES, ARCHIVED})
    rows = await tx.fetch(
        "select kind, state, memory.is_obsolete(kind, state) from unnest($1::text[]) as kind,"
        " unnest($2::text[]) as state",
        list(KINDS),
        states,
    )
    assert {tuple(row) for row in rows} == {
        (kind, state, past_reason(kind, state) is not None) for kind, state in product(KINDS, states)
    }


@pytest.mark.one_server("the indexes are hidden in the catalog of the server that plans the statement")
async def test_the_searches_find_what_is_past_by_its_index(tx: Tx) -> None:
    await tx.execute("set local enable_seqscan = off")
    await tx.execute("reset role")
    # the other indexes are hidden, because on an almost empty table the choice among them depends on other tests
    await tx.execute(
        "update pg_index set indisvalid = false"
        " where indrelid = 'memory.memories'::regclass and indexrelid <> 'memory.memories_hidden_idx'::regclass"
    )
    rows = await tx.fetch(
        "explain select memory_id from memory.memories"
        " where agent_id = $1 and (quarantined or memory.is_obsolete(kind, state))",
        ANA,
    )
    assert "memories_hidden_idx" in "\n".join(row[0] for row in rows)
