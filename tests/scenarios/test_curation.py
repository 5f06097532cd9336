"""What a person may say about what is known, and what the daily job tells of its work."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.curation import CurationService
from newton.agent.services.ingest import IngestService
from newton.agent.services.memories import FactDraft
from newton.errors import ConflictError, InputError, NotFoundError
from tests.scenarios.conftest import Mind


def curation(mind: Mind) -> CurationService:
    return CurationService(scope=mind.scope.at("cli"))


def upkeep(mind: Mind, *, bundle_retention_days: int = 90) -> MaintenanceService:
    return MaintenanceService(
        bundle_retention_days=bundle_retention_days,
        llm=None,
        scope=mind.scope.at("job lifecycle"),
    )


async def tell(mind: Mind, *said: tuple[str, str, str]) -> None:
    for content, subject, attribute in said:
        mind.clock.advance(timedelta(minutes=1))
        await mind.verbs.remember(FactDraft(content=content, subject=subject, attribute=attribute))


async def test_only_an_attribute_of_one_value_supersedes_by_itself_and_a_person_says_which(mind: Mind) -> None:
    # S002-16
    await curation(mind).set_cardinality("Favourite_Team", single_valued=True)
    await curation(mind).set_cardinality("email", single_valued=False)
    await tell(mind, ("Ana is for Brann", "Ana", "favourite team"), ("Ana is for Vard", "Ana", "favourite team"))
    await tell(mind, ("ana@x.org", "Ana", "email"), ("ana@y.org", "Ana", "email"), ("Oslo", "Ana", "lives in"))
    assert set(await mind.facts()) == {"Ana is for Vard", "ana@x.org", "ana@y.org", "Oslo"}
    assert await curation(mind).list_attributes() == {"email": False, "favourite team": True, "lives in": True}


async def test_a_person_is_told_what_becomes_of_a_fact_and_of_others(mind: Mind) -> None:
    # S002-16
    until = mind.clock.now() + timedelta(days=30)
    await mind.verbs.remember(FactDraft(content="Ana is away", subject="Ana", attribute="status", until=until))
    shown = (await curation(mind).get(await named(mind, "Ana is away"))).fact
    assert shown == {"subject": "Ana", "attribute": "status", "until": f"{until:%Y-%m-%d %H:%M}"}
    await tell(mind, ("Ana lives in Oslo", "Ana", "lives in"))
    oslo = await named(mind, "Ana lives in Oslo")
    with pytest.raises(InputError, match="no time zone"):
        await curation(mind).supersede(oslo, "Ana lives in Bergen", at=mind.clock.now().replace(tzinfo=None))
    await tell(mind, ("Ana lives in Bergen", "Ana", "lives in"))
    with pytest.raises(ConflictError, match="superseded already"):
        await curation(mind).supersede(oslo, "Ana lives in Bodø")
    assert set(await mind.facts()) == {"Ana is away", "Ana lives in Bergen"}
    mind.clock.advance(timedelta(minutes=1))
    began = mind.clock.now()
    await curation(mind).retract(await named(mind, "Ana lives in Bergen"))
    changed = [(change.transition.event, change.micro) for change in await curation(mind).list_changes(began)]
    assert sorted(changed) == [("disproved", "Ana lives in Bergen"), ("restored", "Ana lives in Oslo")]
    await curation(mind).forget([oslo], include_derived=False, reason="it is about somebody else")
    with pytest.raises(NotFoundError, match="was forgotten on 2026-11-21: it is about somebody else"):
        await curation(mind).get(oslo[-8:])


async def test_the_daily_job_tells_every_step_it_took(mind: Mind) -> None:
    # S002-16: those that say the same become one, those that grew too many are told in few
    liked = ["tea", "jazz", "chess", "plums", "opera", "rain", "tango", "maps", "owls", "snow", "bread", "lakes"]
    await tell(mind, *((f"Ana likes {thing}", "Ana", "likes") for thing in liked))
    await tell(mind, ("Ben owns a boat.", "Ben", "owns"), ("Ben owns the boat", "Ben", "owns"))
    steps = (await upkeep(mind).run_lifecycle()).steps
    kept = await mind.fetch("select memory_id, event from memory.transitions where origin = 'job lifecycle'")
    stored = sorted((row["memory_id"], row["event"]) for row in kept)
    assert sorted((step.memory_id, step.event) for step in steps) == stored
    assert {step.event for step in steps} >= {"merged", "generalized"}
    mind.clock.advance(timedelta(seconds=1))
    assert (await upkeep(mind).run_lifecycle()).steps == [], "twice is like once"


async def test_who_says_that_it_is_so_is_told_when_it_was_retracted(mind: Mind) -> None:
    told = ("Ana sails", "Ana", "likes")
    await tell(mind, told)
    own = curation(mind)
    sails = str(await mind.fetchval("select memory_id from heart.facts"))
    await own.retract(sails)
    before = await own.get(sails)
    for again in (tell(mind, told), own.confirm(sails)):
        with pytest.raises(ConflictError, match="was retracted"):
            await again
    assert await own.get(sails) == before, "and nothing is counted"


async def test_a_file_whose_name_is_no_text_is_refused_and_the_others_go_in(mind: Mind, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("Tea is green.")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("Coffee is black.")
    ingest = IngestService(scope=mind.scope.at("cli"))
    report = await ingest.ingest((await ingest.find_documents(tmp_path)).documents, trust="user")
    assert (report.documents, report.new) == (1, 1)
    (refused,) = report.refused
    assert "caf" in str(refused)
    assert str(refused).encode(), "it may be printed"


async def named(mind: Mind, words: str) -> str:
    return str(await mind.fetchval("select memory_id from memory.memories where full_text = $1", words))


async def test_a_document_that_is_gone_is_missed(mind: Mind, tmp_path: Path) -> None:
    reader = IngestService(scope=mind.scope.at("ingest"))
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"This is {name}.", encoding="utf-8")
    await reader.ingest((await reader.find_documents(tmp_path)).documents, trust="user")
    assert await reader.mark_missing(tmp_path) == []
    (tmp_path / "two.md").unlink()
    assert await reader.mark_missing(tmp_path / "elsewhere") == [], "another folder says nothing of this one"
    assert await reader.mark_missing(tmp_path) == [str(tmp_path / "two.md")]
    assert await reader.mark_missing(tmp_path) == [], "once"
    rows = await mind.fetch("select full_text, state from memory.memories where kind = 'passage'")
    assert {row["full_text"]: row["state"] for row in rows} == {"This is one.": "ACTIVE", "This is two.": "SUPERSEDED"}
