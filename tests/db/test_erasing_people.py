"""Erasing people of ordinary chat under all their names: no word of them is left, and nobody else is touched."""

import re
import unicodedata
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from newton.agent.erasure import text_scan
from newton.agent.erasure.person_names import find_person_names
from newton.agent.services.erasure import ErasureService
from newton.clock import ManualClock
from newton.content.yaml_source import parse_trusted
from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import InputError
from newton.heart.entities import entity_store
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from tests.support import NOON, agent_scope, count, ground, teller
from tests.system.lines import everything
from tests.unit.source_trees import ROOT

Line = tuple[str, str]
DATA: dict[str, Any] = parse_trusted((ROOT / "tests/data/people.yaml").read_text(encoding="utf-8"))
MAX_LEFT = 0.05


def erasing(db: Database, agent: UUID, *logs: Path) -> ErasureService:
    scope = agent_scope(agent_id=agent, origin="cli", db=db, clock=ManualClock(NOON), count_tokens=count)
    return ErasureService(scope=scope, logs=logs)


async def chat(db: Database, agent: UUID, lines: list[Line], ref: str = "chat") -> None:
    """Store the lines as messages of their speakers, as facts, and as an episode."""
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref=ref, now=NOON)
        said = [Message(role="user", name=name, content=text, said_at=NOON) for name, text in lines]
        await sessions.append(tx, said, session_id=session_id, ctx=ctx)
        facts = [NewFact(ref=f"{ref} {n}", content=text, valid_from=NOON) for n, (_, text) in enumerate(lines)]
        await fact_store.add_facts(tx, facts, ctx=ground(ctx))
        await entity_store.index_mentions(tx, ctx=ctx)


def finds(form: str, text: str) -> bool:
    """Return whether a text has the form as a whole word, in exact case: "cat" is not the person Cat."""
    letters = r"\w\u0300-\u036f"
    pattern = re.escape(form) if form > "\u3000" else rf"(?<![{letters}]){re.escape(form)}(?![{letters}])"
    return re.search(pattern, text) is not None


def test_the_people_are_thirty_and_named_in_many_ways() -> None:
    assert len(DATA["people"]) == 30
    assert sum(len(one["forms"]) for one in DATA["people"]) >= 130
    assert any(unicodedata.normalize("NFC", form) != form for one in DATA["people"] for form in one["forms"])


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_of_thirty_people_no_word_is_left_and_nobody_else_is_touched(db: Database, agent: UUID) -> None:
    # S8
    await chat(db, agent, [line for one in DATA["people"] for line in one["lines"]] + DATA["others"])
    left, forms = list[str](), [form for one in DATA["people"] for form in one["forms"]]
    kept = {text: name for name, text in [line for one in DATA["people"] for line in one["lines"]] + DATA["others"]}
    for person in DATA["people"]:
        plan = await erasing(db, agent).plan(person["name"])
        done = await erasing(db, agent).erase(person["name"], token=plan.token, reason="asked for")
        assert done.remains == {}, person["name"]
        rows = await everything(db, agent)
        dump = "\n".join(rows)
        left += [form for form in person["forms"] if finds(form, dump)]
        for _, text in person["lines"]:
            del kept[text]
        assert [text for text in kept if text not in dump] == [], f"{person['name']} took others along"
    assert len(left) <= MAX_LEFT * len(forms), left


def test_names_that_people_share_are_shown_and_not_erased() -> None:
    lines = [text for one in DATA["later"] for _, text in one["lines"]] + [text for _, text in DATA["later_others"]]
    left, forms = list[str](), 0
    for person in DATA["later"]:
        found = find_person_names(person["name"], [], lines)
        own = {text for _, text in person["lines"]}
        gone = {text for text in lines if re.search(found.pattern, text)}
        assert gone <= own, person["name"]
        left += [form for form in person["forms"] if any(finds(form, text) for text in own - gone)]
        forms += len(person["forms"])
    assert len(left) <= 0.1 * forms, left
    martin = find_person_names("Martin Berg", [], lines)
    assert {"Martina Berg", "Martin Luther"} <= {one.name for one in martin.near_misses}
    assert "Martin" not in martin.spellings and "Marty" in martin.spellings
    also = find_person_names("Ricardo Quiñones", [], lines, also=["Richie"])
    assert re.search(also.pattern, "Richie broke two strings.")


async def test_the_scan_after_an_erasure_reads_archived_texts_and_logs(
    db: Database, agent: UUID, tmp_path: Path
) -> None:
    # S8
    log = tmp_path / "postgres.log"
    log.write_text("ERROR: duplicate key (Ola)\nSTATEMENT: Olaf stays\n" + "x" * (1 << 20) + " Wiśniewska\n", "utf-8")
    size = log.stat().st_size
    await chat(db, agent, [tuple(line) for line in DATA["people"][0]["lines"]])
    plan = await erasing(db, agent, log).plan("Aleksandra Wiśniewska")
    assert text_scan.count_in_logs([log], plan.names) == {str(log): 2}
    done = await erasing(db, agent, log).erase("Aleksandra Wiśniewska", token=plan.token, reason="asked for")
    text = log.read_text("utf-8")
    assert done.remains == {}
    assert (log.stat().st_size, "Olaf stays" in text, "(Ola)" in text, "Wiś" in text) == (size, True, False, False)


async def test_an_unknown_name_is_refused_with_similar_ones(db: Database, agent: UUID) -> None:
    await chat(db, agent, [("Nora", "Katharina Lohmeyer sings.")])
    with pytest.raises(InputError, match="Nothing") as refused:
        await erasing(db, agent).plan("Katharine")
    assert "Katharina" in str(refused.value.hint)
