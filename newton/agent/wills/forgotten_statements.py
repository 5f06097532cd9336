"""Deletion of what a person asks to forget, with all that was made of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from newton.agent.maintenance.statement_extraction import learn_again
from newton.agent.services.erasure import redact_texts
from newton.agent.wills.will_targets import ForgetTarget, read_messages
from newton.brain import decisions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.message_queues import EpisodeMessage, describe_source
from newton.dialogue.messages import Message, StoredMessage, to_memory
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.text_evidence import list_stems
from newton.heart.wills.meant_statements import list_parts
from newton.heart.wills.will_reader import is_about
from newton.ids import new_id
from newton.memory import store, tombstones
from newton.memory.forgetting import DerivedMemory, forget, list_derived
from newton.memory.memory import Trust
from newton.memory.tombstones import FORGOTTEN, is_redacted, mark_rest
from newton.text.sentences import split_sentences

SQL = load("newton.agent.wills", "forgotten_statements.sql")

MIN_REPEATED = 20  # characters of a text that records repeat because of it: a shorter one occurs in others by chance
REASON = "a person asked to forget it"


async def forget_targets(tx: Tx, targets: Sequence[ForgetTarget], *, topic: str = "", ctx: LifecycleContext) -> int:
    """Delete statements with the replies to them and what was made of them; return how many were still there.

    A message keeps the sentences that say something else. Decisions keep their records without texts, and texts of
    prompts that repeat a statement are deleted.
    """
    kept = {one.memory_id: one.kept for one in targets}
    rows = await read_messages(tx, list(kept), ctx.agent_id)
    if not rows:
        return 0
    rests = {row["memory_id"]: _divide(row["content"], kept[row["memory_id"]]) for row in rows}
    gone = [sentence for removed, _ in rests.values() for sentence in removed]
    answers = await _find_answers(tx, [row["memory_id"] for row in rows], gone, topic, ctx.agent_id)
    ids = [*rests, *(row["memory_id"] for row in answers if row["memory_id"])]
    derived = await list_derived(tx, ids, agent_id=ctx.agent_id)
    # a fact that corrects one of these is written whole, with its words
    key = {"agent_id": ctx.agent_id, "memory_ids": [one.memory_id for one in derived]}
    corrections = [DerivedMemory(*row) for row in await SQL["list_corrections"].fetch_all(tx, **key)]
    corrections = [one for one in corrections if any(is_about(one.micro, text) for text in gone)]
    ids, derived = list(dict.fromkeys([*ids, *(one.memory_id for one in corrections)])), [*derived, *corrections]
    told = [row["memory_id"] for row in rows if row["kind"] == "decision"]
    for memory_id in (*told, *(one.memory_id for one in derived if one.kind == "decision")):
        await decisions.erase(tx, memory_id, reason=REASON, ctx=ctx)
    facts = [one.micro for one in derived if one.kind == "fact" and any(is_about(one.micro, text) for text in gone)]
    await tombstones.bury(tx, [*gone, *facts], (), ctx=ctx)
    await forget(tx, [one for one in ids if one not in told], derived=True, reason=REASON, ctx=ctx, is_buried=True)
    places = {"session_ids": [row["session_id"] for row in answers], "positions": [row["position"] for row in answers]}
    await SQL["forget_answers"].execute(tx, agent_id=ctx.agent_id, **places)
    repeated = [text for text in (*gone, *(row["content"] for row in answers)) if len(text) >= MIN_REPEATED]
    await redact_texts(tx, repeated, reason=REASON, ctx=ctx)
    await SQL["drop_responses"].execute(tx, agent_id=ctx.agent_id, texts=gone)
    for row in rows:
        if row["session_id"] and (rest := rests[row["memory_id"]][1]):
            memory_id = await _restore(tx, row, mark_rest(rest, FORGOTTEN), ctx)
            if any(one.kind == "fact" for one in derived):  # what else was read in it stays known
                told = {name: row[name] for name in ("role", "name", "said_at", "trust", "origin", "said_on")}
                line = EpisodeMessage(**told, content=rest, memory_id=memory_id, is_parsed=False)
                await learn_again(tx, line, source=describe_source(row["session"]), ctx=ctx)
    return len(rows)


def _divide(text: str, kept: Collection[int]) -> tuple[list[str], str]:
    """Return the parts of a text that are removed, behind each sentence that loses some, and the text that stays."""
    parts, removed, rest = list_parts(text), list[str](), list[str]()
    for number, sentence in enumerate(split_sentences(text)):
        own = {part: k in kept for k, (n, part) in enumerate(parts) if n == number}
        if all(own.values()) or is_redacted(sentence):
            rest.append(sentence)
            continue
        removed += dict.fromkeys([sentence, *(one for one, stays in own.items() if not stays)])
        rest += [f"{one.rstrip('.')}." for one, stays in own.items() if stays]
    return removed or [text], " ".join(rest) if kept else ""


async def _find_answers(
    tx: Tx, memory_ids: Sequence[UUID], gone: Sequence[str], topic: str, agent_id: UUID
) -> Sequence[Mapping[str, Any]]:
    """Return the replies to messages, and other replies that tell the topic or a removed sentence."""
    stems = frozenset[str]().union(*map(list_stems, (topic, *gone)))
    patterns = sorted(f"%{one}%" for one in stems)
    rows = await SQL["list_answers"].fetch_all(tx, agent_id=agent_id, memory_ids=list(memory_ids), patterns=patterns)
    return [
        dict(row)
        for row in rows
        if row["is_direct"]
        or (topic and is_about(row["content"], topic))
        or any(is_about(row["content"], one) for one in gone)
    ]


async def _restore(tx: Tx, row: Mapping[str, Any], rest: str, ctx: LifecycleContext) -> UUID:
    """Give a forgotten message the parts back that stay, with a memory of its own; return its id."""
    size = ctx.count_tokens(rest)
    place = {"agent_id": ctx.agent_id, "session_id": row["session_id"], "position": row["position"]}
    await SQL["restore_rest"].execute(tx, **place, rest=rest, speaker=row["name"], size=size)
    trust: Trust = row["trust"]
    line = Message(
        role=row["role"], content=rest, said_at=row["said_at"], name=row["name"], ref=row["ref"], min_trust=trust
    )
    stored = StoredMessage(session_id=row["session_id"], position=row["position"], tokens=size, message=line)
    origin = replace(ctx, origin=row["origin"])
    memory_id = new_id()
    await store.remember(tx, agent_id=ctx.agent_id, memories=[to_memory(stored, memory_id=memory_id, ctx=origin)])
    return memory_id
