"""Search for what a person asks to forget, and its deletion with all that was made of it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from newton.agent.services.erasure import redact_texts
from newton.brain import decisions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Message, StoredMessage, to_memory
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.wills.will_reader import MIN_TOPIC_SHARE, Will, is_about, is_clause, is_of_kind, names_kind
from newton.ids import new_id
from newton.memory import store, tombstones
from newton.memory.forgetting import forget, list_derived
from newton.memory.memory import Trust
from newton.memory.tombstones import FORGOTTEN, is_redacted
from newton.text.questions import is_only_question
from newton.text.sentences import split_sentences
from newton.text.time_expressions import find_time_ranges
from newton.text.words import is_continuation, refers_back

SQL = load("newton.agent.wills", "forgotten_statements.sql")

MAX_FOUND = 200  # latest messages of a person that share a word with a topic
MIN_PREFIX = 4  # characters of a stem by which messages are found
MIN_REPEATED = 20  # characters of a text that records repeat because of it: a shorter one occurs in others by chance
MIN_PARTIAL_SHARE = 0.5  # of the words of a topic, for what is only shown
REASON = "a person asked to forget it"


class ForgetTarget(NamedTuple):
    """A message or another memory that a person asks to forget; `kept` are the numbers of the sentences that stay."""

    memory_id: UUID
    text: str
    kept: tuple[int, ...] = ()


class FoundTargets(NamedTuple):
    """The statements that a person may mean. If it is not sure, the person chooses, also among one."""

    targets: Sequence[ForgetTarget]
    is_sure: bool


async def find_targets(tx: Tx, will: Will, place: StoredMessage, *, ctx: LifecycleContext) -> FoundTargets:
    """Return what a message at `place` asks to forget: statements that its person made before."""
    key: dict[str, Any] = {"agent_id": ctx.agent_id, "session_id": place.session_id, "position": place.position}
    if will.scope == "topic":
        found = await _find_topic(tx, will.topic, key)
        return found if found.targets else (await _find_meant(tx, will.topic, key))._replace(is_sure=False)
    if will.scope in ("last", "weak") and will.topic:
        found = await _find_meant(tx, will.topic, key)
        return found._replace(is_sure=found.is_sure and will.scope == "last")
    ranges = find_time_ranges(will.topic, now=place.message.said_at.astimezone()) if will.scope == "time" else []
    if not ranges:
        row = await SQL["read_last"].fetch_one(tx, **key)
        return FoundTargets([ForgetTarget(row["memory_id"], row["content"])] if row else [], is_sure=True)
    rows = await SQL["list_said"].fetch_all(
        tx, **key, patterns=None, since=ranges[0].start, until=ranges[0].end, max_rows=MAX_FOUND
    )
    return FoundTargets([ForgetTarget(row["memory_id"], row["content"]) for row in rows], is_sure=True)


async def _find_meant(tx: Tx, text: str, key: Mapping[str, Any]) -> FoundTargets:
    """Return the messages to which a text may refer by "it": those that share most words with it."""
    stems = list_stems(text)
    patterns = ["%"] if names_kind(text) else _to_patterns(stems)
    rows = await _list_said(tx, patterns, key)
    shared = {
        row["memory_id"]: len(share_stems(stems, list_stems(row["content"]))) or int(is_of_kind(row["content"], text))
        for row in rows
    }
    best = max(shared.values(), default=0)
    found = [ForgetTarget(row["memory_id"], row["content"]) for row in rows if shared[row["memory_id"]] == best > 0]
    return FoundTargets(found, is_sure=sum(map(bool, shared.values())) == 1)


async def _list_said(tx: Tx, patterns: Sequence[str], key: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statements of a person with one of these words, without messages that only ask."""
    rows = await SQL["list_said"].fetch_all(tx, **key, patterns=patterns, since=None, until=None, max_rows=MAX_FOUND)
    return [dict(row) for row in rows if not is_only_question(row["content"])]


def _to_patterns(stems: Collection[str]) -> list[str]:
    return sorted({f"%{stem[: max(MIN_PREFIX, len(stem) - 2)]}%" for stem in stems})


async def _find_topic(tx: Tx, topic: str, key: Mapping[str, Any]) -> FoundTargets:
    """Return the messages, and the other memories without a message, that have the words of a topic."""
    stems = list_stems(topic) or frozenset(re.findall(r"\w+", topic.lower()))
    patterns = ["%"] if names_kind(topic) else _to_patterns(stems)
    said = await _list_said(tx, patterns, key)
    known = await SQL["list_known"].fetch_all(tx, **key, patterns=patterns, max_rows=MAX_FOUND)
    texts = {row["memory_id"]: row["content"] for row in said}
    shares = {row["memory_id"]: _share(row["content"], topic, stems) for row in said}
    for row in known:
        share = _share(row["content"], topic, stems)
        for memory_id in row["source_ids"] or [row["memory_id"]]:
            shares[memory_id] = max(shares.get(memory_id, 0), share)
            texts.setdefault(memory_id, row["content"])
    best = max(shares.values(), default=0)
    if best < MIN_PARTIAL_SHARE:
        return FoundTargets([], is_sure=True)
    limit = min(best, MIN_TOPIC_SHARE)
    found = [memory_id for memory_id, share in shares.items() if share >= limit]
    messages = {row["memory_id"]: row["content"] for row in await _read(tx, found, key["agent_id"])}
    targets = [ForgetTarget(one, messages[one], _find_rest(messages[one], topic)) for one in found if one in messages]
    words = set(re.findall(r"\w+", topic.lower())) if is_clause(topic) else set[str]()
    is_own = all(words <= set(re.findall(r"\w+", one.text.lower())) for one in targets)
    return FoundTargets(targets, is_sure=best >= MIN_TOPIC_SHARE and is_own)


def _share(text: str, topic: str, stems: Collection[str]) -> float:
    """Return which share of the words of a topic a text has."""
    if is_about(text, topic) or topic.lower() in text.lower():
        return 1
    if is_of_kind(text, topic):
        return MIN_PARTIAL_SHARE
    return len(share_stems(stems, list_stems(text))) / max(len(stems), 1)


def _find_rest(text: str, topic: str) -> tuple[int, ...]:
    """Return the numbers of the sentences that say something else than the topic, and do not refer to it."""
    sentences, wanted = split_sentences(text), list_stems(topic)
    gone = {n for n, one in enumerate(sentences) if share_stems(wanted, list_stems(one))}
    if not gone:
        return ()
    for n, one in enumerate(sentences):
        refers = refers_back(one) or is_continuation(one)
        if refers and n and (n in gone or n - 1 in gone):
            gone |= {n, n - 1}
    stems = frozenset[str]().union(*(list_stems(sentences[n]) for n in gone))
    return tuple(n for n, one in enumerate(sentences) if n not in gone and not share_stems(list_stems(one), stems))


async def _read(tx: Tx, memory_ids: Sequence[UUID], agent_id: UUID) -> Sequence[Mapping[str, Any]]:
    rows = await SQL["read_messages"].fetch_all(tx, agent_id=agent_id, memory_ids=list(memory_ids))
    return [dict(row) for row in rows]


async def forget_targets(tx: Tx, targets: Sequence[ForgetTarget], *, topic: str = "", ctx: LifecycleContext) -> int:
    """Delete statements with the replies to them and what was made of them; return how many were still there.

    A message keeps the sentences that say something else. Decisions keep their records without texts, and texts of
    prompts that repeat a statement are deleted.
    """
    kept = {one.memory_id: one.kept for one in targets}
    rows = await _read(tx, list(kept), ctx.agent_id)
    if not rows:
        return 0
    rests = {row["memory_id"]: _divide(row["content"], kept[row["memory_id"]]) for row in rows}
    gone = [sentence for removed, _ in rests.values() for sentence in removed]
    answers = await _find_answers(tx, [row["memory_id"] for row in rows], gone, topic, ctx.agent_id)
    ids = [*rests, *(row["memory_id"] for row in answers if row["memory_id"])]
    derived = await list_derived(tx, ids, agent_id=ctx.agent_id)
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
            await _restore(tx, row, f"{rest} {FORGOTTEN}", ctx)
    return len(rows)


def _divide(text: str, kept: Sequence[int]) -> tuple[list[str], str]:
    """Return the sentences of a text that are removed, and the text of those that stay."""
    sentences = split_sentences(text)
    rest = [one for n, one in enumerate(sentences) if n in kept or is_redacted(one)]
    removed = [one for one in sentences if one not in rest]
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


async def _restore(tx: Tx, row: Mapping[str, Any], rest: str, ctx: LifecycleContext) -> None:
    """Give a forgotten message the sentences back that stay, with a memory of its own."""
    size = ctx.count_tokens(rest)
    place = {"agent_id": ctx.agent_id, "session_id": row["session_id"], "position": row["position"]}
    await SQL["restore_rest"].execute(tx, **place, rest=rest, speaker=row["name"], size=size)
    trust: Trust = row["trust"]
    line = Message(
        role=row["role"], content=rest, said_at=row["said_at"], name=row["name"], ref=row["ref"], min_trust=trust
    )
    stored = StoredMessage(session_id=row["session_id"], position=row["position"], tokens=size, message=line)
    origin = replace(ctx, origin=row["origin"])
    await store.remember(tx, agent_id=ctx.agent_id, memories=[to_memory(stored, memory_id=new_id(), ctx=origin)])
