"""Corrections of what a person said earlier in a session, applied to the facts of the corrected message."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from newton.agent.maintenance.extracted_facts import store_facts, to_fact
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.message_queues import EpisodeMessage
from newton.errors import ConflictError
from newton.heart.facts import conflicts, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.known_checks import is_denied
from newton.heart.reconciliation.text_evidence import list_stems
from newton.heart.speakers import concerns_safety, may_supersede
from newton.heart.statements.read_corrections import FoundCorrection
from newton.heart.statements.slots import concerns_another
from newton.heart.statements.statement_selection import state_whole
from newton.text.languages import detect_language


class MessageReading(NamedTuple):
    """A message of a user, the facts that it states, and the earlier message that it corrects, with the correction.

    `source` names the session. `denied` are its clauses that only deny something.
    """

    message: EpisodeMessage
    source: str
    facts: Sequence[NewFact]
    corrected: EpisodeMessage | None = None
    correction: FoundCorrection | None = None
    denied: Sequence[str] = ()


SQL = load("newton.agent.maintenance", "told_corrections.sql")


async def apply_correction(
    tx: Tx, reading: MessageReading, episode_id: UUID | None = None, *, ctx: LifecycleContext
) -> int:
    """Store what a message corrects as whole facts in place of the wrong ones; return how many were not known before.

    If nothing replaces what was said, its facts are retracted. What was said becomes a fact too if it was none, so that
    its message is marked as changed since. Core facts stay. A fact on safety stays too, beside the right one, as both
    are unsettled until a person settles them: a message does not say whether an app relayed it.
    """
    message, source, _, corrected, correction, _ = reading
    if corrected is None or correction is None:
        return 0
    rows = await SQL["list_stated"].fetch_all(
        tx, agent_id=ctx.agent_id, message_id=corrected.memory_id, ref=str(corrected.memory_id)
    )
    stated = {row["memory_id"]: row["text"] for row in rows if _may_correct(message, row)}
    if correction.new is None:
        for memory_id, text in stated.items():
            if correction.concerns(text) and not concerns_safety(text):
                await fact_store.retract(tx, memory_id, ctx=ctx)
        return 0
    right = {memory_id: new for memory_id, text in stated.items() if (new := correction.apply(text))}
    is_refused = any(correction.apply(row["text"]) for row in rows) and not right
    is_refused |= f"{correction.sentence}?" in corrected.content  # a question states nothing
    if not right and not is_refused and (new := correction.apply(correction.sentence)):
        wrong = to_fact(corrected, state_whole(correction.sentence, corrected.name), source)
        await store_facts(tx, [wrong], episode_id, ctx=replace(ctx, trust=corrected.trust, origin=corrected.origin))
        right = {await fact_store.find_fact_id(tx, wrong, agent_id=ctx.agent_id): new}
    count = 0
    for wrong_id, text in right.items():
        fact = to_fact(message, state_whole(text, message.name), source)
        count += await store_facts(tx, [fact], episode_id, ctx=ctx)
        await _replace_fact(
            tx, wrong_id, fact, is_risky=concerns_safety(stated.get(wrong_id, correction.sentence)), ctx=ctx
        )
    return count


def denies(denial: str, text: str) -> bool:
    """Return whether a clause denies a statement: of the same holder, with all its words and few others.

    >>> texts = ("My car is blue.", "My brother's car is blue.", "My car is blue and has a rack, a bed and a stove.")
    >>> [denies("my car isn't blue", text) for text in texts]
    [True, False, False]
    """
    stems, known, code = list_stems(denial), list_stems(text), detect_language(text)
    is_other = concerns_another(text, denial, code) or concerns_another(denial, text, code)
    return stems <= known and 2 * len(stems) >= len(known) and not is_other and not is_denied(text)


async def apply_denials(
    tx: Tx, reading: MessageReading, episode_id: UUID | None = None, *, ctx: LifecycleContext
) -> int:
    """End the facts that a message denies; return how many were not known before.

    A fact on safety stays, and the denial stands beside it as a fact, so that a person settles the two.
    """
    message, count = reading.message, 0
    for clause in reading.denied:
        parts = [f"%{stem}%" for stem in list_stems(clause)]
        rows = await SQL["list_with_parts"].fetch_all(tx, agent_id=ctx.agent_id, parts=parts) if parts else []
        denied = [row for row in rows if _may_correct(message, row) and denies(clause, row["text"])]
        for row in denied:
            if not concerns_safety(row["text"]):
                await fact_store.retract(tx, row["memory_id"], ctx=ctx)
        if any(concerns_safety(row["text"]) for row in denied):
            fact = to_fact(message, state_whole(clause, message.name), reading.source)
            count += await store_facts(tx, [fact], episode_id, ctx=ctx)
    return count


async def _replace_fact(tx: Tx, wrong_id: UUID, fact: NewFact, *, is_risky: bool, ctx: LifecycleContext) -> None:
    """Supersede the wrong fact by a stored one, or only contest it if it is risky."""
    fact_id = await fact_store.find_fact_id(tx, fact, agent_id=ctx.agent_id)
    try:
        if is_risky:
            await conflicts.contest(tx, wrong_id, fact, ctx=ctx)
        else:
            await fact_store.supersede(tx, wrong_id, by_fact=fact_id, ctx=ctx)
    except ConflictError:  # the right value was corrected to the wrong one before
        if not is_risky:
            await fact_store.retract(tx, wrong_id, ctx=ctx)


def _may_correct(message: EpisodeMessage, fact: Mapping[str, Any]) -> bool:
    """Return whether a message may correct a fact of an earlier one, or contest it if it concerns safety."""
    return may_supersede(message.trust, known=fact["trust"], is_confirmed=fact["is_confirmed"])
