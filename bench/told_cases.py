"""The kinds of cases of `python -m bench told`: how each is told to an agent, and what became of it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from bench.case_report import Case, CaseFinding, CaseJudge
from bench.simulated_agent import SimulatedAgent, StoredFact, has_words, states
from newton.agent.wills.carried_wills import ASK
from newton.dialogue import veils
from newton.dialogue.messages import StoredMessage
from newton.text.words import extract_content_words

WEEKS = timedelta(days=21)  # between the older and the newer of two statements
FRAGMENT_WORDS = 4  # of the longest correction that is a fragment
REPORTED = ": “"  # in a fact that names who said it, and so does not assert it


async def _judge_commitment(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    await agent.say("chat", *filter(None, [case.get("earlier")]))
    await agent.say("chat", *filter(None, [case.get("question")]), role="assistant")
    before = {one.memory_id for one in await agent.read_facts()}
    await agent.say("chat", case["text"])
    await agent.rest()
    facts, asserted = _list_current(await agent.read_facts()), case.get("asserted", [])
    for part in asserted:
        yield CaseFinding("asserted", "kept" if any(states(one.text, part) for one in facts) else "lost", part)
    doubtful = [
        one.text
        for one in facts
        if one.memory_id not in before
        and REPORTED not in one.text
        and not any(states(one.text, part) for part in asserted)
    ]
    for part in case.get("unasserted", []):
        yield CaseFinding(
            "unasserted", "kept as fact" if any(states(one, part) for one in doubtful) else "left out", part
        )


async def _judge_corrections(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    await agent.say("chat", case["first"], *case.get("between", []), case["correction"])
    await agent.rest()
    old, new, rest = case["old"], case["new"], extract_content_words(case["first"].replace(case["old"], " "))
    texts = [one.text for one in _list_current(await agent.read_facts())]
    is_known = any(has_words(one, new) and (not rest or rest & extract_content_words(one)) for one in texts)
    has_old = any(has_words(one.replace(new, " "), old) for one in texts)
    outcome = "the old is current" if has_old else "right" if is_known else "the new is not known"
    yield CaseFinding("corrections", outcome)
    if len(case["correction"].split()) <= FRAGMENT_WORDS:
        yield CaseFinding("corrections, fragments", outcome)


async def _judge_changes(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    pair = await _tell_pair(agent, case)
    was_fact = any(has_words(one.text, case["gone"]) for one in pair.first)
    stale = {one.memory_id for one in _list_current(pair.older) if has_words(one.text, case["gone"])}
    outcome = "right" if was_fact else "right, the older was no fact"
    if stale:
        outcome = "unsettled" if stale <= pair.unsettled else "the older is current"
    yield CaseFinding("changes", outcome)
    yield CaseFinding(f"changes, {case['kind']}", outcome)


async def _judge_lookalikes(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    pair = await _tell_pair(agent, case)
    first, held = {one.memory_id for one in pair.first}, [one for one in pair.older + pair.newer if _holds(one)]
    is_lost = not first <= {one.memory_id for one in held} or len(held) < len(pair.older + pair.newer)
    outcome = "both current" if pair.newer else "only the older is a fact"
    if first & pair.unsettled:
        outcome = "unsettled"
    elif not first or is_lost:
        outcome = "replaced" if is_lost else "the older was no fact"
    yield CaseFinding("lookalikes", outcome)


class _ToldPair(NamedTuple):
    """The facts of the older statement before the newer one was told, then of both, and the ids of unsettled facts."""

    first: list[StoredFact]
    older: list[StoredFact]
    newer: list[StoredFact]
    unsettled: frozenset[UUID]


async def _tell_pair(agent: SimulatedAgent, case: Case) -> _ToldPair:
    await agent.say("older", case["older"])
    await agent.rest(agent.clock.now() + WEEKS, nightly=True)
    first, since = _list_current(await agent.read_facts()), agent.clock.now()
    await agent.say("newer", case["newer"])
    await agent.rest()
    facts, unsettled = await agent.read_facts(), frozenset[UUID]().union(*await agent.list_conflicts())
    older, newer = ([one for one in facts if (one.said_at >= since) is is_newer] for is_newer in (False, True))
    return _ToldPair(first, older, newer, unsettled)


async def _judge_restated(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    pair = await _tell_pair(agent, case)
    _, confirmed = await agent.count_confirmed()
    is_lost = not pair.first or any(not _holds(one) for one in pair.older)
    yield CaseFinding("restated", "replaced" if is_lost else "confirmed" if confirmed else "told twice")


async def _judge_uncorrected(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    await agent.say("chat", case["first"])
    first = {one.memory_id for one in _list_current(await agent.read_facts())}
    await agent.say("chat", case["second"])
    await agent.rest()
    lost = first - {one.memory_id for one in await agent.read_facts() if _holds(one)}
    yield CaseFinding("uncorrected", "replaced" if lost else "kept" if first else "the older was no fact")


async def _judge_wills(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    await agent.say("chat", *case.get("before", []))
    done, (asked,) = "done", await agent.say("chat", case["will"])
    if ASK in asked.notice:
        done = "done, asked first"
        listed = [one["id"] for one in (await _read_will(agent, asked)).choices]
        texts = await agent.read_texts([UUID(one) for one in listed])
        chosen = [n for n, text in enumerate(texts, 1) if any(has_words(text, word) for word in case["gone"])]
        await agent.say("chat", ", ".join(map(str, chosen)) or "none")
    await agent.say("chat", *case.get("after", []))
    await agent.rest()
    rows = {name: "\n".join(texts) for name, texts in (await agent.read_rows()).items()}
    left = [f"{word} in {name}" for word in case["gone"] for name, text in rows.items() if has_words(text, word)]
    lost = [word for word in case.get("stays", []) if not any(has_words(text, word) for text in rows.values())]
    outcome = "words are left" if left else "other words are lost" if lost else done
    yield CaseFinding("wills", outcome, ", ".join(left or lost))


async def _read_will(agent: SimulatedAgent, asked: StoredMessage) -> veils.SessionWill:
    scope = agent.services.scope
    async with scope.transaction() as tx:
        return await veils.read_session_will(tx, session_id=asked.session_id, agent_id=scope.agent_id)


async def _judge_not_wills(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    (stored,) = await agent.say("chat", case["text"])
    held = await _read_will(agent, stored)
    is_taken = stored.notice or held.veil or stored.message.content != case["text"]
    yield CaseFinding("not_wills", "taken for a will" if is_taken else "kept", stored.notice)


async def _judge_talk(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    await agent.say("chat", case["statement"])
    before = {one.memory_id for one in _list_current(await agent.read_facts())}
    await agent.say("chat", case["message"])
    await agent.rest()
    after = {one.memory_id for one in _list_current(await agent.read_facts())}
    is_changed = before - after or await agent.list_conflicts()
    yield CaseFinding("talk", "changed a fact" if is_changed else "became a fact" if after - before else "nothing")


async def _judge_notes(agent: SimulatedAgent, case: Case) -> AsyncGenerator[CaseFinding]:
    for note in case["notes"]:
        await agent.remember(note)
    await agent.rest(nightly=True)
    for fact in await agent.read_facts():
        outcome = "kept" if fact.is_current else "merged" if fact.is_merged else "replaced"
        yield CaseFinding("notes", outcome, fact.text)
    conflicts = len(await agent.list_conflicts())
    yield CaseFinding("notes, stores", "conflicts" if conflicts else "no conflict", str(conflicts))


def _list_current(facts: Sequence[StoredFact]) -> list[StoredFact]:
    return [one for one in facts if one.is_current]


def _holds(fact: StoredFact) -> bool:
    return fact.is_current or fact.is_merged


JUDGES: Mapping[str, CaseJudge] = {
    "commitment": _judge_commitment,
    "corrections": _judge_corrections,
    "changes": _judge_changes,
    "lookalikes": _judge_lookalikes,
    "restated": _judge_restated,
    "uncorrected": _judge_uncorrected,
    "wills": _judge_wills,
    "not_wills": _judge_not_wills,
    "talk": _judge_talk,
    "notes": _judge_notes,
}
