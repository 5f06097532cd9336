"""What becomes of a conversation: an episode when it is idle, facts from it once, and the record of its procedures."""

from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.loop.turn import TurnInput
from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.curation import CurationService
from newton.agent.services.memories import FactDraft
from newton.agent.services.procedures import ProcedureService
from newton.agent.session_data.tasks import TaskService
from newton.content.skills import SkillFile, SkillSet
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.dialogue.session_close import find_idle_sessions
from newton.errors import InputError, ProviderError
from newton.heart.episodes import EpisodeSummary, set_summary
from newton.heart.lifecycle.transition_rules import INEFFECTIVE_MARK
from newton.providers.fakes import BrokenEmbedder, ScriptedChat
from newton.providers.minilm import MiniLM
from tests.scenarios.conftest import Mind, newton
from tests.support import teller

IDLE = timedelta(minutes=16)


def maintenance(mind: Mind) -> MaintenanceService:
    assert mind.embedder
    return newton(mind, mind.embedder).maintenance("job extract")


async def learns(mind: Mind) -> tuple[int, int]:
    """The numbers of episodes and facts that the job makes of what was said."""
    report = await maintenance(mind).learn()
    return report.episodes, report.extraction.facts


async def stored(mind: Mind, kind: str) -> list[dict[str, object]]:
    return [dict(row) for row in await mind.fetch("select * from memory.memories where kind = $1", kind)]


async def test_an_idle_session_is_learnt_and_its_later_part_at_the_next_idle_time(mind: Mind) -> None:
    await mind.hear("I moved to Bergen in May.", session="s")
    assert await learns(mind) == (0, 1), "it may go on, and what it states is known"
    mind.clock.advance(IDLE)
    assert await learns(mind) == (1, 0)
    mind.clock.advance(IDLE)
    assert await learns(mind) == (0, 0), "nothing twice"
    await mind.hear("My sister is called Ana.", "I moved to Bergen in May.", session="s")
    mind.clock.advance(IDLE)
    assert await learns(mind) == (1, 1)
    rows = await mind.fetch("select first_position, last_position from heart.episodes order by first_position")
    assert [tuple(row) for row in rows] == [(0, 0), (1, 2)]
    assert await mind.fetchval("select count(*) from heart.facts") == 2, "what is said again confirms"


async def test_what_a_person_removed_does_not_come_back_when_the_session_is_closed(mind: Mind) -> None:
    # S002-17, S002-16
    texts = ["I work as a nurse.", "My car is a green Skoda.", "I live in Oslo.", "My sister is called Ana."]
    await mind.hear(*texts, session="s")
    assert await learns(mind) == (0, 4)
    ids = {row["full_text"]: str(row["memory_id"]) for row in await stored(mind, "fact")}
    curation = CurationService(scope=mind.scope)
    await curation.retract(ids[texts[0]])
    await curation.forget([ids[texts[1]]], include_derived=False, reason="a test")
    await curation.supersede(ids[texts[2]], "I live in Bergen.")
    before = {row["full_text"]: row["state"] for row in await stored(mind, "fact")}
    assert [before.get(text) for text in texts] == ["INACTIVE", None, "SUPERSEDED", "NEW"]
    await mind.hear("Carla lives in Turin.", session="s")
    mind.clock.advance(IDLE)
    assert await learns(mind) == (1, 1), "what was said last is new"
    after = {row["full_text"]: row["state"] for row in await stored(mind, "fact")}
    assert after == {**before, "Carla lives in Turin.": "NEW"}
    linked = "select m.full_text from memory.links as l join memory.memories as m using (agent_id, memory_id)"
    rows = await mind.fetch(f"{linked} where l.link = 'part_of'")
    assert sorted(row[0] for row in rows) == sorted([texts[0], *texts[2:], "Carla lives in Turin."])
    episode = await mind.fetchval("select memory_id from heart.episodes")
    await curation.forget([str(episode)], include_derived=False, reason="a test")
    assert await learns(mind) == (0, 0), "its messages are not read again"


async def test_an_embedder_that_fails_leaves_the_statements_for_the_next_run(mind: Mind) -> None:
    await mind.hear("I moved to Bergen in May.", session="s")
    broken = newton(mind, BrokenEmbedder(MiniLM.identity, MiniLM.dimensions)).maintenance("job extract")
    assert await broken.learn_statements() == 0
    assert await maintenance(mind).learn_statements(only_recent=True) == 1
    assert await maintenance(mind).learn_statements() == 0


async def test_with_a_model_what_is_stated_is_learnt_at_once_and_parsed_once(mind: Mind) -> None:
    assert mind.embedder
    await mind.hear("I moved to Bergen in May.", session="s")
    modelled = newton(mind, mind.embedder, ScriptedChat("{}", "{}")).maintenance("job extract")
    assert await modelled.learn_statements() == 1
    (fact,) = await stored(mind, "fact")
    assert (fact["full_text"], fact["trust"]) == ("I moved to Bergen in May.", "user")
    await CurationService(scope=mind.scope).forget([str(fact["memory_id"])], include_derived=False, reason="a test")
    await mind.hear("My sister is called Ana.", session="s")
    mind.clock.advance(IDLE)
    report = await modelled.learn()
    assert (report.episodes, report.extraction.facts, report.reconciliation.calls) == (1, 1, 1)
    assert [row["full_text"] for row in await stored(mind, "fact")] == ["My sister is called Ana."]


async def test_a_model_that_fails_keeps_nothing_from_being_learnt_of_the_same_session(mind: Mind) -> None:
    assert mind.embedder
    modelled = newton(mind, mind.embedder, ScriptedChat()).maintenance("job extract")
    await mind.hear("I moved to Bergen in May.", session="s")
    mind.clock.advance(IDLE)
    with pytest.raises(ProviderError):
        await modelled.learn()
    await mind.hear("My sister is called Ana.", session="s")
    assert await modelled.learn_statements() == 1, "the part that the model has not read holds it up no longer"
    assert len(await stored(mind, "fact")) == 2


async def test_questions_alone_become_no_episode_and_are_looked_at_once(mind: Mind) -> None:
    session_id = await mind.hear("Where is the harbour?", session="s")
    mind.clock.advance(IDLE)
    assert await learns(mind) == (0, 0)
    async with mind.db.transaction(mind.agent_id) as tx:
        sql = "select last_position from dialogue.episode_watermarks where session_id = $1"
        assert await tx.fetchval(sql, session_id) == 0
        now = mind.clock.now()
        assert await find_idle_sessions(tx, agent_id=mind.agent_id, before=now, limit=5) == []
    await mind.hear("I live in Bergen.", session="s")
    mind.clock.advance(IDLE)
    assert await learns(mind) == (1, 1), "the question is part of the episode"


async def test_a_fact_has_the_origin_the_trust_and_the_message_of_who_said_it(mind: Mind) -> None:
    session_id = await mind.session("s")
    said = [
        Message(role="user", name="Ana", content="I moved to Bergen in May.", said_at=mind.clock.now()),
        Message(role="user", content="We use PostgreSQL 16.", said_at=mind.clock.now(), min_trust="agent"),
        Message(role="user", content="I live in Oslo.", said_at=mind.clock.now(), min_trust="web"),
        Message(role="assistant", content="I live in a computer.", said_at=mind.clock.now()),
    ]
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = teller(mind.agent_id, origin="http", now=mind.clock.now())
        await sessions.append(tx, said, session_id=session_id, ctx=ctx)
    mind.clock.advance(IDLE)
    assert await learns(mind) == (1, 2)
    found = {row["full_text"]: (row["trust"], row["origin"], row["quarantined"]) for row in await stored(mind, "fact")}
    assert found == {
        "Ana: “I moved to Bergen in May.”": ("agent", "http", False),  # others speak without a name, so Ana is no user
        "We use PostgreSQL 16.": ("agent", "http", False),
    }
    rows = await mind.fetch(
        "select f.subject, x.position from heart.facts as f join memory.sources as s using (agent_id, memory_id)"
        " join memory.memories as x on x.agent_id = s.agent_id and x.memory_id = s.source_id order by x.position"
    )
    assert [tuple(row) for row in rows] == [("Ana", 0), ("user", 1)]


async def test_an_archived_episode_leaves_its_facts_and_decisions_once(mind: Mind) -> None:
    # S002-17
    at = mind.clock.now()
    text = "We decided to sell the boat. I moved to Bergen in May. It rained."
    await mind.verbs.remember_episode(text, title="The summer", occurred_at=at)
    await mind.hear("Carla lives in Oslo.", session="s")
    assert await mind.fetchval("select count(*) from heart.facts") == 0
    mind.clock.advance(IDLE)
    await maintenance(mind).close_idle_sessions()
    mind.clock.advance(timedelta(days=91))
    for _ in range(2):
        await maintenance(mind).apply_transitions("episode")
        facts = {row["full_text"] for row in await stored(mind, "fact")}
        assert facts == {"We decided to sell the boat.", "I moved to Bergen in May.", "Carla lives in Oslo."}
        assert {row["state"] for row in await stored(mind, "episode")} == {"ARCHIVED"}
    decided = "select m.full_text from heart.facts join memory.memories as m using (agent_id, memory_id)"
    assert await mind.fetchval(f"{decided} where attribute = 'decided'") == "We decided to sell the boat."
    assert await mind.fetchval("select count(*) from memory.links where link = 'part_of'") == 3


async def test_the_outcome_of_an_episode_is_set_and_no_model_replaces_it(mind: Mind) -> None:
    # S002-6
    episode = await mind.verbs.remember_episode("We sailed to Oslo.", title="The trip")
    curation = CurationService(scope=mind.scope)
    for outcome in ("failure", "partial"):
        await curation.set_outcome(episode.memory_id.hex, outcome)
    memory = await curation.get(episode.memory_id.hex)
    assert (memory.outcome, memory.summary) == ("partial", "[2026-11-21] (partial) The trip: We sailed to Oslo.")
    async with mind.db.transaction(mind.agent_id) as tx:
        summary = EpisodeSummary(title="Sailing", summary="All went well.", outcome="success")
        await set_summary(tx, episode.memory_id, summary, ctx=teller(mind.agent_id))
    assert (await curation.get(episode.memory_id.hex)).outcome == "partial"
    fact = await mind.verbs.remember(FactDraft(content="The boat is red."))
    with pytest.raises(InputError, match="is not an episode; its kind is fact"):
        await curation.set_outcome(fact.memory_id.hex, "success")


TRIGGER = "deploy the site"
SKILLS = {
    "rsync": SkillFile(
        name="rsync", description="Please deploy the site now.", core=("Copy the files.",), triggers=(TRIGGER,)
    ),
    "image": SkillFile(name="image", description="Ship by containers.", core=("Build an image.",), triggers=(TRIGGER,)),
}


async def deploys(mind: Mind, session_id: UUID, *, succeeds: bool) -> None:
    """A task whose turn is given both procedures, and its end."""
    tasks = TaskService(scope=mind.scope, session_id=session_id)
    await tasks.push("Deploy the site.")
    mind.clock.advance(timedelta(seconds=1))
    turn = mind.turns(ScriptedChat("Done.")).run(TurnInput(session_id=session_id, text="Please deploy the site now."))
    assert [piece async for piece in turn]
    await (tasks.pop("It is online.") if succeeds else tasks.fail("It is offline."))


async def test_a_task_records_the_use_and_the_outcome_of_the_procedures_that_its_turns_were_given(mind: Mind) -> None:
    # S002-18
    procedures = ProcedureService(scope=mind.scope)
    await procedures.sync_from_disk(SkillSet(SKILLS))
    await mind.settle()
    session_id = await mind.session("s")
    tasks = TaskService(scope=mind.scope, session_id=session_id)
    await tasks.push("Do nothing.")
    await tasks.pop("Done.")
    records = {one.name: (one.activations, one.successes) for one in await procedures.list_procedures()}
    assert records == {"rsync": (0, 0), "image": (0, 0)}, "no turn was given one"
    await tasks.push("Launch.")
    await deploys(mind, session_id, succeeds=True)
    await tasks.pop("Launched.")
    records = {one.name: (one.activations, one.successes) for one in await procedures.list_procedures()}
    assert records == {"rsync": (1, 1), "image": (1, 1)}, "a task does not rate those of its subtasks again"


async def test_a_procedure_that_fails_too_often_is_marked_and_comes_last(mind: Mind) -> None:
    # S002-18
    procedures = ProcedureService(scope=mind.scope)
    await procedures.sync_from_disk(SkillSet(SKILLS))
    await mind.settle()
    first = await mind.context("Please deploy the site now.")
    shown = [line.removeprefix("## Procedure: ") for line in first.text.split("\n") if line.startswith("## Procedure")]
    assert shown == ["rsync", "image"] and INEFFECTIVE_MARK not in first.text
    worse, better = shown
    for _ in range(6):
        await procedures.record_use(worse, "failure")
    (record,) = [one for one in await procedures.list_procedures() if one.name == worse]
    assert record.state == "INEFFECTIVE"
    text = (await mind.context("Please deploy the site now.")).text
    assert text.index(f"## Procedure: {better}") < text.index(f"## Procedure: {worse}\n- {INEFFECTIVE_MARK}")
    assert text.count(INEFFECTIVE_MARK) == 1
    for _ in range(12):
        await procedures.record_use(worse, "success")
    assert INEFFECTIVE_MARK not in (await mind.context("Please deploy the site now.")).text
