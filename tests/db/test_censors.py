"""Censors: how they are met, how they grow stricter, and that nobody but a person lifts one."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest

from newton.agent.loop.action_gate import ActionGate
from newton.agent.services.censors import CensorService
from newton.clock import ManualClock
from newton.db.pool import Database
from newton.errors import CensorError, ConflictError, InputError, NotFoundError
from newton.heart import censors
from newton.heart.censors import Censor, CensorAction, CensorRule, MatchMode, find_matching
from newton.ids import new_id
from newton.memory.lookup import short_id
from newton.memory.memory import Trust
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.chat import ReplyDelta, ReplyPiece
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from tests.support import DEFAULT_THRESHOLDS, NOON, agent_scope, count, ground, teller
from tests.timing import assert_near_linear

PUSH = CensorRule(trigger="push to main", reason="releases go through review")


def gate(db: Database, agent: UUID, embedder: HashEmbedder | BrokenEmbedder | None = None) -> ActionGate:
    return ActionGate(
        scope=agent_scope(
            agent_id=agent,
            origin="test",
            db=db,
            clock=ManualClock(NOON),
            count_tokens=count,
            thresholds=DEFAULT_THRESHOLDS,
            embedder=embedder,
        )
    )


def service(gate: ActionGate) -> CensorService:
    return CensorService(scope=gate.scope)


def censor(
    trigger: str, *, sense: MatchMode = "phrase", action: CensorAction = "warn", state: str = "ACTIVE"
) -> Censor:
    return Censor(
        memory_id=new_id(),
        state=state,
        summary=f"**WARN:** {trigger} — so",
        summary_tokens=9,
        match_mode=sense,
        trigger=trigger,
        action=action,
        reason="so",
        domain=None,
        embedding=np.array([1.0, 0.0], dtype=np.float32) if sense == "meaning" else None,
    )


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        ("git push to main", True),
        ("Push  TO\nMain!", True),
        ("push to mainland", False),  # whole words
        ("push it to main", False),
        ("", False),
    ],
)
def test_a_phrase_is_met_as_whole_words_in_any_case(text: str, meets: bool) -> None:
    assert bool(find_matching([censor("push to main")], text, ())) is meets


def test_a_trigger_is_met_by_likeness_and_said_in_as_many_tokens() -> None:
    # S002-12
    close, far = np.array([0.8, 0.6], dtype=np.float32), np.array([0.5, 0.87], dtype=np.float32)
    one = censor("secrets in logs", sense="meaning")
    assert find_matching([one], "anything", [far, close]) == [one]
    assert find_matching([one], "anything", [far]) == []
    assert find_matching([one], "secrets in logs", ()) == []
    # a censor that blocks says so in as many tokens
    assert censor("x").context_line == "**WARN:** x — so"
    assert (
        censor("x", action="block").context_line == censor("x", state="ESCALATED").context_line == "**BLOCK:** x — so"
    )


@pytest.mark.parametrize(("trigger", "sense"), [("(a+)+$", "pattern"), ("a a", "phrase")])
def test_no_pattern_takes_more_than_linear_time(trigger: str, sense: MatchMode) -> None:
    assert find_matching([censor(trigger, sense=sense)], "a" * 1_000 + "b", ()) == []
    assert_near_linear(lambda size: find_matching([censor(trigger, sense=sense)], "a" * size + "b", ()), 1_000_000)


@pytest.mark.parametrize("pattern", ["(", "(?=x)y", r"(a)\1", "((a{1,100}){1,100}){1,100}", "[z-a]"])
def test_a_pattern_that_cannot_be_used_is_refused_with_a_remedy(pattern: str) -> None:
    with pytest.raises(InputError, match="RE2"):
        CensorRule(trigger=pattern, reason="so", match_mode="pattern")


@pytest.mark.parametrize(
    "rule", [{"trigger": "x*", "match_mode": "pattern"}, {"trigger": "?!"}, {"trigger": "a" * 501}]
)
def test_a_trigger_that_says_nothing_or_too_much_is_refused(rule: "dict[str, str]") -> None:
    with pytest.raises(InputError):
        CensorRule(reason="so", **rule)  # pyright: ignore[reportArgumentType]  # as a door passes it


async def test_three_activations_in_earnest_make_a_warning_a_block(db: Database, agent: UUID) -> None:
    # S002-19
    own = gate(db, agent)
    assert await service(own).add(PUSH)
    assert not await service(own).add(PUSH), "the same rule again changes nothing"
    states: list[tuple[str, bool]] = []
    for _ in range(4):
        ruling = await own.check("we push to main", "action")
        (listed,) = await service(own).list_censors()
        states.append((listed.state, ruling.blocks))
    assert states == [("ACTIVE", False), ("ACTIVE", False), ("ESCALATED", False), ("ESCALATED", True)]


async def test_a_dry_check_and_a_text_that_does_not_meet_it_count_nothing(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(PUSH)
    assert (await own.check("push to main", "input", dry_run=True)).matches
    assert (await own.check("pull from main", "input")).matches == ()
    assert [(c.state, c.activations) for c in await service(own).list_censors()] == [("CREATED", 0)]


async def test_a_censor_wrong_more_often_than_not_is_retired_after_five(db: Database, agent: UUID) -> None:
    # S002-19: false positives do not make it stricter either
    own = gate(db, agent)
    await service(own).add(PUSH)
    for n in range(5):
        await own.check("push to main", "input")
        (known,) = await service(own).list_censors()
        if n < 3:
            await service(own).report_false_positive(str(known.memory_id))
    assert [(c.state, c.activations, c.false_positives) for c in await service(own).list_censors()] == [
        ("RETIRED", 5, 3)
    ]
    assert (await own.check("push to main", "input")).matches == ()
    with pytest.raises(NotFoundError, match="no censor"):
        await service(own).report_false_positive(str(new_id()))


async def test_what_an_agent_or_a_tool_forbids_waits_for_a_person(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    for trust in ("agent", "tool", "web"):
        ctx = teller(agent, trust=trust)
        rule = CensorRule(trigger=f"listen to the {trust}", reason="it says so")
        async with db.transaction(agent) as tx:
            (memory_id,) = await censors.add_rules(tx, [rule], ctx=ground(ctx))
        assert (await own.check(f"listen to the {trust}", "input")).matches == ()
        assert [c.is_proposed for c in await service(own).list_censors() if c.memory_id == memory_id] == [True]
        assert (await service(own).approve(str(memory_id))).changed
        assert not (await service(own).approve(str(memory_id))).changed, "once"
        assert (await own.check(f"listen to the {trust}", "input")).matches


async def test_what_a_person_forbids_is_in_force_though_a_model_proposed_it_first(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    async with db.transaction(agent) as tx:
        proposed = ground(teller(agent, trust="agent"))
        assert await censors.add_rules(tx, [PUSH], ctx=proposed)
        assert not await censors.add_rules(tx, [PUSH], ctx=proposed), "twice proposed is not approved"
    assert (await own.check("push to main", "action")).matches == ()
    assert await service(own).add(PUSH)
    assert [c.is_blocking for c in (await own.check("push to main", "action", dry_run=True)).matches] == [False]
    assert not await service(own).add(PUSH), "once"


@pytest.mark.parametrize("trust", ["user", "agent"])
async def test_a_person_may_make_a_known_warning_a_block(db: Database, agent: UUID, trust: Trust) -> None:
    own = gate(db, agent)
    async with db.transaction(agent) as tx:
        await censors.add_rules(tx, [PUSH], ctx=ground(teller(agent, trust=trust)))
    strict = replace(PUSH, action="block")
    assert await service(own).add(strict)
    assert (await own.check("push to main", "action")).blocks
    assert not await service(own).add(strict), "once"


async def test_what_was_taken_out_of_force_is_not_said_to_be_in_force(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(PUSH)
    (known,) = await service(own).list_censors()
    await service(own).retire(str(known.memory_id))
    with pytest.raises(ConflictError, match="retired permanently"):
        await service(own).add(PUSH)
    assert await service(own).add(replace(PUSH, trigger="push to the main branch"))


@pytest.mark.slow
async def test_the_end_of_a_long_text_is_checked_too(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(replace(PUSH, action="block"))
    await service(own).add(
        CensorRule(trigger=r"rm -rf /\w+", reason="it is gone then", match_mode="pattern", action="block")
    )
    assert len((await own.check("very " * 190_000 + "push to main; rm -rf /etc", "input")).matches) == 2


async def test_nothing_that_is_remembered_lifts_a_censor(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(CensorRule(trigger="push to main", reason="review", action="block"))
    again = CensorRule(trigger="push to main", reason="the user allows it now", action="warn")
    assert not await service(own).add(again)
    assert (await own.check("push to main", "action")).blocks


async def test_without_an_embedder_it_says_that_meanings_were_not_asked(db: Database, agent: UUID) -> None:
    own = gate(db, agent, HashEmbedder())
    await service(own).add(CensorRule(trigger="passwords in the log", reason="many read it", match_mode="meaning"))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    assert (await own.check("passwords in the log", "output")).matches
    assert (await gate(db, agent).check("passwords in the log", "output")).unchecked == "no embedding model is set"
    broken = gate(db, agent, BrokenEmbedder(HashEmbedder.identity, HashEmbedder.dimensions))
    assert (await broken.check("passwords in the log", "output")).unchecked


async def test_a_meaning_is_found_anywhere_in_a_long_text(db: Database, agent: UUID) -> None:
    own = gate(db, agent, HashEmbedder())
    await service(own).add(CensorRule(trigger="passwords in the log", reason="many read it", match_mode="meaning"))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    padding = "The weather at the harbour was mild that day, and boats came and went. " * 40
    assert not (await own.check(padding, "output")).matches
    assert (await own.check(f"{padding}\nPasswords in the log.\n{padding}", "output")).matches
    unseen = await own.check(padding * 8 + "Passwords in the log.", "output")
    assert not unseen.matches and unseen.unchecked and "only the first" in unseen.unchecked


async def spoken(*pieces: ReplyPiece) -> AsyncGenerator[ReplyPiece]:
    for piece in pieces:
        yield piece


async def in_force(own: ActionGate) -> Sequence[Censor]:
    async with own.scope.transaction() as tx:
        return await own.list_rules(tx)


async def heard(own: ActionGate, *pieces: str) -> tuple[str, bool]:
    """What reaches the listener, and whether it was stopped."""
    said: list[str] = []
    try:
        async for piece in own.filter_stream(spoken(*pieces), rules=await in_force(own)):
            said.append(str(piece))  # noqa: PERF401 (a comprehension would lose what came before it was stopped)
    except CensorError:
        return "".join(said), True
    return "".join(said), False


async def test_an_answer_is_stopped_before_the_line_that_a_block_forbids(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    assert await heard(own, "First.\nThen pu", "sh to ma", "in now.\nDone.") == (
        "First.\nThen push to main now.\nDone.",
        False,
    )
    await service(own).add(CensorRule(trigger="push to main", reason="review", action="block"))
    assert await heard(own, "First.\nThen pu", "sh to ma", "in now.\nDone.") == ("First.\n", True)
    assert await heard(own, "push to", "\nmain") == ("push to\n", True), "over the end of a line too"
    assert await heard(own, "All ", "is ", "well.") == ("All is well.", False)
    (known,) = await service(own).list_censors()
    assert (known.state, known.activations) == ("ACTIVE", 2)


async def test_what_is_no_text_is_held_back_until_it_is_known_to_be_allowed(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(CensorRule(trigger="push to main", reason="review", action="block"))
    good = ReplyDelta(index=2, delta={"content": "I wait."})
    said: list[ReplyPiece] = [
        ReplyDelta(delta={"reasoning": "Shall I push "}),
        ReplyDelta(delta={"reasoning": "to main?"}),
        ReplyDelta(index=1, delta={"content": "I push to main."}),
        good,
        "All is well.",
    ]
    kept = [piece async for piece in own.filter_stream(spoken(*said), rules=await in_force(own))]
    assert kept == ["All is well.", ReplyDelta(index=1, finish_reason="content_filter"), good]


async def test_a_warning_lets_an_answer_through_and_does_not_count_it(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(PUSH)
    assert await heard(own, "push to main") == ("push to main", False)
    assert [c.activations for c in await service(own).list_censors()] == [0]


QUESTIONS = [
    "Why may I not push to main?",
    "What happens if I push to main",
    "Explain why we do not push to main.",
    "Could you tell me why I cannot push to main?",
    "Are we allowed to push to main? I want to know.",
    "How come nobody may push to main?",
]
ACTS = [
    "Push to main.",
    "Can you push to main?",
    "I asked why it is slow. Now push to main!",
    "Why don't you push to main?",
    "push to main, ok?",
    "When the tests pass, push to main.",
]


async def test_questions_about_a_warning_do_not_make_it_a_block(db: Database, agent: UUID) -> None:
    # S002-19
    own = gate(db, agent)
    await service(own).add(PUSH)
    for text in QUESTIONS:
        assert (await own.check(text, "input")).matches, "the warning is shown all the same"
    assert [(c.state, c.activations) for c in await service(own).list_censors()] == [("CREATED", 0)]
    for count_, text in enumerate(ACTS, 1):
        await own.check(text, "input")
        assert [c.activations for c in await service(own).list_censors()] == [count_], text


async def escalate(db: Database, agent: UUID) -> tuple[ActionGate, str]:
    own = gate(db, agent)
    await service(own).add(PUSH)
    for _ in range(3):
        await own.check("we push to main", "action")
    (known,) = await service(own).list_censors()
    assert known.state == "ESCALATED"
    return own, str(known.memory_id)


async def test_a_false_positive_takes_back_the_block_that_rested_on_it(db: Database, agent: UUID) -> None:
    # S002-19
    own, memory_id = await escalate(db, agent)
    await service(own).report_false_positive(memory_id)
    assert [(c.state, c.false_positives) for c in await service(own).list_censors()] == [("ACTIVE", 1)]
    assert not (await own.check("we push to main", "action")).blocks
    assert (await own.check("we push to main", "action")).blocks, "three correct matches block again"


async def test_a_false_positive_does_not_lift_what_a_person_made_a_block(db: Database, agent: UUID) -> None:
    own = gate(db, agent)
    await service(own).add(PUSH)
    await service(own).add(replace(PUSH, action="block"))
    await own.check("we push to main", "action")
    (known,) = await service(own).list_censors()
    await service(own).report_false_positive(str(known.memory_id))
    assert (await own.check("we push to main", "action")).blocks


@pytest.mark.parametrize("action", ["warn", "block"])
async def test_a_relaxed_censor_warns_and_counts_from_zero(db: Database, agent: UUID, action: CensorAction) -> None:
    # S002-19
    own = gate(db, agent)
    await service(own).add(replace(PUSH, action=action))
    for _ in range(3):
        await own.check("we push to main", "action")
    check = await own.check("we push to main", "action", dry_run=True)
    assert check.blocks
    (known,) = await service(own).list_censors()
    assert short_id(known.memory_id) in check.message
    assert f"newton censors relax {short_id(known.memory_id)}" in check.remedy
    assert (await service(own).relax(str(known.memory_id), "the release is over")).changed
    assert not (await service(own).relax(str(known.memory_id), "once")).changed
    blocked: list[bool] = []
    for minute in range(1, 5):
        assert isinstance(own.scope.clock, ManualClock)
        own.scope.clock.advance(timedelta(minutes=minute))
        blocked.append((await own.check("we push to main", "action")).blocks)
    assert blocked == [False, False, False, True]


async def test_a_domain_that_no_frame_names_is_refused(db: Database, agent: UUID) -> None:
    own = CensorService(scope=gate(db, agent).scope, domains=frozenset({"operations", "writing"}))
    with pytest.raises(InputError, match=r"gardening.*\n?.*operations, writing"):
        await own.add(replace(PUSH, domain="gardening"))
    assert await own.add(replace(PUSH, domain="operations"))
