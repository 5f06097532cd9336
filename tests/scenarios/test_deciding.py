"""Deciding as a whole: what is known comes first, what is forbidden is not recorded, and the chain's end is noted."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from newton.agent.services.decisions import DecisionService
from newton.brain.drafts import DecisionDraft, GuardrailResult, TrackRecord
from newton.brain.guardrails import GuardrailRule, evaluate
from newton.brain.hash_chain import BrokenLink, ChainHead, derive_database_key
from newton.brain.queries import DecisionFilter
from newton.db.pool import Tx
from newton.errors import CensorError, ConfigError, ConflictError, GuardrailError, InputError
from newton.heart import censors
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder
from tests.db.deciding import REDIS, choice
from tests.scenarios.conftest import Mind

RULES = (
    GuardrailRule(name="overdue", expression="record.overdue > 0", severity="warn", message="look back first"),
    GuardrailRule(name="no-reason", expression="size(reasons) == 0", severity="block", message="give a reason"),
)


async def strict(tx: Tx, choice: DecisionDraft, standing: TrackRecord) -> Sequence[GuardrailResult]:
    return evaluate(RULES, choice, standing)


@pytest.fixture
def deciding(mind: Mind) -> DecisionService:
    return DecisionService(
        gate=mind.gate, chain_heads=mind.chain_heads, evaluate_guardrails=strict, scope=mind.scope.at("test")
    )


async def records(mind: Mind) -> int:
    return await mind.fetchval("select count(*) from brain.decision_records")


async def test_what_was_decided_before_and_how_it_went_comes_first(mind: Mind, deciding: DecisionService) -> None:
    first = await deciding.decide(REDIS)
    assert (first.is_new, first.precedents, first.base_rate.reviewed) == (True, [], 0)
    await mind.settle()
    mind.clock.advance(timedelta(days=1))
    await deciding.review(first.decision_id.hex, "partial", lesson="It evicts too early")
    outlook = await deciding.preview(replace(REDIS, description="Use Redis for the page cache", at=mind.clock.now()))
    (found,) = outlook.precedents
    assert found.decision_id == first.decision_id
    assert found.text.startswith("[partial, 0.85] Use Redis for the session cache. Lesson: It evicts too early.")
    assert (outlook.base_rate.reviewed, outlook.base_rate.success_rate) == (1, 0.5)
    assert not outlook.blocked
    assert await records(mind) == 2


async def test_what_a_guardrail_or_a_censor_blocks_is_not_recorded(mind: Mind, deciding: DecisionService) -> None:
    with pytest.raises(GuardrailError, match="give a reason"):
        await deciding.decide(choice("Just do it"))
    await mind.censors.add(censors.CensorRule(trigger="push to main", reason="it is reviewed first", action="block"))
    with pytest.raises(CensorError, match="it is reviewed first"):
        await deciding.decide(replace(REDIS, description="Push to main at once"))
    with pytest.raises(InputError, match="confidence"):
        await deciding.decide(replace(REDIS, confidence=1.2))
    assert await records(mind) == 0
    (listed,) = await mind.censors.list_censors()
    assert listed.activations == 1


async def test_what_warned_is_kept_with_the_decision(mind: Mind, deciding: DecisionService) -> None:
    await mind.censors.add(censors.CensorRule(trigger="redis", reason="it was lost once"))
    await deciding.decide(REDIS)
    mind.clock.advance(timedelta(days=40))
    second = await deciding.decide(replace(REDIS, at=mind.clock.now(), look_again_at=None))
    whole = await deciding.get(second.decision_id.hex)
    (censor,) = await mind.censors.list_censors()
    assert whole.body["rulings"] == [
        {"guardrail": "overdue", "verdict": "warned"},
        {"guardrail": "no-reason", "verdict": "passed"},
        {"censor": str(censor.memory_id), "verdict": "warned"},
    ]
    assert isinstance(await deciding.verify_chain(), ChainHead)


async def test_a_decision_that_is_sent_again_under_its_ref_is_the_first_one(
    mind: Mind, deciding: DecisionService
) -> None:
    told = replace(REDIS, ref="d1", look_again_at=None)
    first = await deciding.decide(told)
    mind.clock.advance(timedelta(minutes=1))
    again = await deciding.decide(replace(told, at=mind.clock.now()))
    assert (again.decision_id, again.is_new) == (first.decision_id, False)
    with pytest.raises(ConflictError, match="different content"):
        await deciding.decide(replace(told, at=mind.clock.now(), confidence=0.9))


async def test_a_look_leaves_no_trace(mind: Mind, deciding: DecisionService) -> None:
    await mind.censors.add(censors.CensorRule(trigger="redis", reason="it was lost once"))
    assert (await deciding.preview(REDIS)).censors
    (listed,) = await mind.censors.list_censors()
    assert (listed.activations, await records(mind)) == (0, 0)


async def test_a_decision_takes_the_place_of_another_in_one_unit_of_work(mind: Mind, deciding: DecisionService) -> None:
    old = await deciding.decide(REDIS)
    mind.clock.advance(timedelta(days=1))
    new = replace(REDIS, description="Use Memcached", at=mind.clock.now(), look_again_at=None)
    await deciding.decide(new, supersedes=[old.decision_id.hex])
    assert [(one.description, one.outcome) for one in await deciding.list_decisions(DecisionFilter())] == [
        ("Use Memcached", None),
        (REDIS.description, "partial"),
    ]


async def test_decisions_stand_in_the_context_in_a_layer_of_their_own(mind: Mind, deciding: DecisionService) -> None:
    # S002-5, S002-9, S002-12
    await deciding.decide(REDIS)
    await mind.settle()
    bundle = await mind.context("Should we use Redis for the session cache?", frame="decision")
    assert "## Relevant Past Decisions\n- [pending, 0.85] Use Redis for the session cache." in bundle.text
    assert bundle.layers["decisions"].used > 0


async def test_the_end_of_the_chain_is_noted_outside_after_every_change(deciding: DecisionService) -> None:
    made = await deciding.decide(REDIS)
    assert deciding.chain_heads.load(deciding.scope.agent_id) == await deciding.verify_chain()
    await deciding.add_thought(made.decision_id.hex, "is it warm?")
    noted = deciding.chain_heads.load(deciding.scope.agent_id)
    assert noted == await deciding.verify_chain()
    deciding.chain_heads.save(deciding.scope.agent_id, ChainHead(1, bytes(32)))
    assert deciding.chain_heads.load(deciding.scope.agent_id) == noted
    deciding.chain_heads.save(deciding.scope.agent_id, ChainHead(3, bytes(32)))
    assert await deciding.verify_chain() == BrokenLink(
        3, "the end of the chain is missing: the head saved outside the database has 3 records"
    )


CUT = (
    "delete from brain.decision_texts as t using brain.decision_records as r"
    " where t.agent_id = $1 and r.agent_id = $1 and r.record_id = t.record_id and r.seq = 3",
    "delete from brain.decision_records where agent_id = $1 and seq = 3",
    "update brain.chain_heads set seq = 2,"
    " hash = (select hash from brain.decision_records where agent_id = $1 and seq = 2) where agent_id = $1",
)


async def test_a_cut_tail_is_found_after_the_chain_has_grown_past_it(deciding: DecisionService, dsn: str) -> None:
    first = await deciding.decide(REDIS)
    await deciding.add_thought(first.decision_id.hex, "is it warm?")
    await deciding.add_thought(first.decision_id.hex, "it is not")
    owner = await asyncpg.connect(dsn)
    unit = owner.transaction()
    await unit.start()
    await owner.execute("set local session_replication_role = replica")
    for change in CUT:
        await owner.execute(change, deciding.scope.agent_id)
    await unit.commit()
    await owner.close()
    for thought in ("it is after all", "or is it?"):
        await deciding.add_thought(first.decision_id.hex, thought)
    found = await deciding.verify_chain()
    assert isinstance(found, BrokenLink)
    assert (found.seq, "rewritten" in found.reason) == (3, True)


async def test_a_note_that_cannot_be_kept_keeps_nobody_from_deciding(deciding: DecisionService) -> None:
    deciding.chain_heads.folder.write_text("a file where the folder should be")
    assert (await deciding.decide(REDIS)).is_new
    deciding.chain_heads.folder.unlink()
    await deciding.add_thought((await deciding.list_decisions(DecisionFilter()))[0].decision_id.hex, "well")
    deciding.chain_heads.path(deciding.scope.agent_id).write_text("{}")
    with pytest.raises(ConfigError, match="is not a valid chain head file"):
        await deciding.verify_chain()


def test_a_database_is_told_from_another_by_where_it_is() -> None:
    here = derive_database_key("postgresql://ana:secret@db/newton")
    assert here == derive_database_key("postgresql://ben@db/newton")
    assert (
        len(
            {
                here,
                derive_database_key(None),
                derive_database_key("postgresql://db/other"),
                derive_database_key("postgresql:///newton?host=/x"),
            }
        )
        == 4
    )


@pytest.mark.parametrize(
    ("says", "outcome"),
    [("exit 0", "success"), ("exit 1", "failure"), ("exit 2", None), ("sleep 100 & sleep 100", None)],
)
async def test_a_verifier_says_what_became_of_a_decision(
    deciding: DecisionService, says: str, outcome: str | None
) -> None:
    made = await deciding.decide(REDIS)
    strict = replace(deciding, verifiers={"architecture": ("sh", "-c", says)}, verifier_timeout_seconds=1.0)
    assert await strict.run_verifier(made.decision_id.hex) == outcome
    (listed,) = await deciding.list_decisions(DecisionFilter())
    assert (listed.outcome, listed.review_method) == (outcome, "verifier" if outcome else None)


async def test_a_verifier_gets_the_id_and_no_word_of_the_decision(deciding: DecisionService, tmp_path: Path) -> None:
    made = await deciding.decide(replace(REDIS, description="$(touch owned); `touch owned`"))
    written = tmp_path / "words"
    command = ("sh", "-c", 'printf "%s" "$*" > "$0"', str(written), "{decision}", "{description}")
    assert await replace(deciding, verifiers={"architecture": command}).run_verifier(made.decision_id.hex) == "success"
    assert written.read_text() == f"{made.decision_id} {{description}}"


async def test_without_a_verifier_that_can_be_run_nothing_is_said(deciding: DecisionService) -> None:
    which = (await deciding.decide(REDIS)).decision_id.hex
    with pytest.raises(ConfigError, match="No verifier is configured for the category 'architecture'"):
        await deciding.run_verifier(which)
    for command in (("/nowhere/at/all",), ()):
        with pytest.raises(ConfigError, match=r"cannot be run|command is empty"):
            await replace(deciding, verifiers={"architecture": command}).run_verifier(which)
    await deciding.review(which, "success")
    with pytest.raises(ConflictError, match="already reviewed"):
        await replace(deciding, verifiers={"architecture": ("true",)}).run_verifier(which)


async def test_a_new_decision_is_linked_to_what_is_near_or_shares_a_tag(mind: Mind, deciding: DecisionService) -> None:
    first = await deciding.decide(replace(REDIS, tags=("other",)))
    tagged = await deciding.decide(replace(REDIS, description="Buy more memory for every server that we have"))
    await mind.settle()
    again = await deciding.decide(REDIS)
    edges = (await deciding.get(again.decision_id.hex)).links
    made = {edge.other_id: edge.link for edge in edges if edge.memory_id == again.decision_id}
    assert made == {first.decision_id: "near", tagged.decision_id: "relates"}
    assert isinstance(await deciding.verify_chain(), ChainHead)


async def test_the_record_advises_every_context(mind: Mind, deciding: DecisionService) -> None:
    # S002-21: from the record alone, at most 100 tokens, and only when there is enough of it
    for n in range(30):
        mind.clock.advance(timedelta(hours=1))
        made = await deciding.decide(
            replace(REDIS, description=f"Plan number {n}", at=mind.clock.now(), confidence=0.9, look_again_at=None)
        )
        await deciding.review(str(made.decision_id), "success" if n % 2 else "failure")
    bundle = await mind.context("What now?")
    section = bundle.text.partition("## Note\n")[2]
    assert section.startswith("Recent accuracy 50 %. Brier 0.410. Strongly overconfident")
    assert bundle.text.endswith(section), "it stands last"
    assert 0 < bundle.layers["note"].used <= 100
    assert (await mind.context("What now?", budget=60)).tokens <= 60


async def test_without_enough_outcomes_nothing_is_advised(mind: Mind, deciding: DecisionService) -> None:
    # S002-21
    made = await deciding.decide(REDIS)
    await deciding.review(str(made.decision_id), "success")
    assert "Recent accuracy" not in (await mind.context("What now?")).text


class Slow(HashEmbedder):
    """While it works, a person erases."""

    def __init__(self, deciding: DecisionService, decision_id: str) -> None:
        self.deciding, self.decision_id = deciding, decision_id

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await self.deciding.erase(self.decision_id, reason="asked for")
        return await super().embed(texts)


async def test_no_vector_of_erased_words_comes_in_late(mind: Mind, deciding: DecisionService) -> None:
    made = await deciding.decide(REDIS)
    await EmbeddingOutbox(deciding.scope.db, Slow(deciding, str(made.decision_id)), deciding.scope.agent_id).drain()
    assert await mind.fetchval("select count(*) from memory.embeddings") == 0


async def test_what_is_being_decided_is_in_view_whatever_is_asked(mind: Mind, deciding: DecisionService) -> None:
    for n in range(25):
        await deciding.decide(
            replace(
                choice(f"Tea of kind {n} for the tea kitchen"),
                at=mind.clock.now() - timedelta(days=9),
                reasons=REDIS.reasons,
            )
        )
    made = await deciding.decide(REDIS)
    await mind.settle()
    asked = "tea kitchen tea of which kind for tea"
    bundle = await mind.context(asked)
    assert "## Current Focus\n- [pending, 0.85] Use Redis" in bundle.text
    _, is_erased = await deciding.erase(str(made.decision_id), reason="asked for")
    assert is_erased
    kept = await mind.fetchval("select count(*) from cognition.bundles where text like '%Redis%'")
    assert kept == 0, "a context that showed it goes with its words"
    await deciding.mark_done(str(made.decision_id))
    assert "0.85" not in (await mind.context(asked)).text
