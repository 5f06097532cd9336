"""Search for what a person asks to forget, and its deletion with all that was made of it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector

from newton.agent.maintenance.statement_extraction import learn_again
from newton.agent.services.erasure import redact_texts
from newton.brain import decisions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.message_queues import EpisodeMessage, describe_source
from newton.dialogue.messages import Message, StoredMessage, to_memory
from newton.errors import ProviderError
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.statements.clauses import refers_to_other, split_alone
from newton.heart.wills.will_reader import MIN_TOPIC_SHARE, Will, is_about, is_clause, is_of_kind, names_kind
from newton.ids import derive_model_id, new_id
from newton.memory import store, tombstones
from newton.memory.forgetting import forget, list_derived
from newton.memory.memory import Trust
from newton.memory.tombstones import FORGOTTEN, is_redacted, mark_rest
from newton.providers.embedding import Embedder
from newton.text.questions import is_only_question
from newton.text.sentences import split_sentences
from newton.text.time_expressions import find_time_ranges
from newton.text.words import is_continuation, refers_back

SQL = load("newton.agent.wills", "forgotten_statements.sql")

MAX_FOUND = 200  # latest messages of a person that share a word with a topic
MIN_PREFIX = 4  # characters of a stem by which messages are found
MIN_REPEATED = 20  # characters of a text that records repeat because of it: a shorter one occurs in others by chance
MIN_SIMILARITY, MAX_DISTANCE, MAX_NEAR = 0.35, 0.1, 3  # of vectors to a topic of which no message has a word
MIN_PARTIAL_SHARE = 0.5  # of the words of a topic, for what is only shown
_OWNER = re.compile(r"^.*['’]s\s+|\s+(?:of|von|de|di|van)\s.*$", re.IGNORECASE)
REASON = "a person asked to forget it"


class ForgetTarget(NamedTuple):
    """A message or another memory that a person asks to forget; `kept` are the numbers of the parts that stay."""

    memory_id: UUID
    text: str
    kept: tuple[int, ...] = ()


class FoundTargets(NamedTuple):
    """The statements that a person may mean. If it is not sure, the person chooses, also among one."""

    targets: Sequence[ForgetTarget]
    is_sure: bool


async def find_targets(
    tx: Tx, will: Will, place: StoredMessage, *, embedder: Embedder | None, ctx: LifecycleContext
) -> FoundTargets:
    """Return what a message at `place` asks to forget: statements that its person made before."""
    key: dict[str, Any] = {"agent_id": ctx.agent_id, "session_id": place.session_id, "position": place.position}
    if will.scope == "topic":
        found = await _find_topic(tx, will.topic, key)
        found = found if found.targets else (await _find_meant(tx, will.topic, key))._replace(is_sure=False)
        return found if found.targets or not embedder else await _find_near(tx, will.topic, key, embedder)
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


async def _find_near(tx: Tx, topic: str, key: Mapping[str, Any], embedder: Embedder) -> FoundTargets:
    """Return the messages that come nearest to a topic, if any is near: "the shingles", told as "herpes zoster"."""
    try:
        (vector,) = await embedder.embed([topic])
    except ProviderError:
        return FoundTargets([], is_sure=False)
    search = {"model_id": derive_model_id(embedder.identity), "embedding": HalfVector(vector)}
    rows = await SQL["find_near"].fetch_all(tx, **key, **search, min_similarity=MIN_SIMILARITY, max_rows=MAX_NEAR)
    near = [row for row in rows if row["similarity"] >= rows[0]["similarity"] - MAX_DISTANCE]
    return FoundTargets([ForgetTarget(row["memory_id"], row["content"]) for row in near], is_sure=False)


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
    """Return which share of the words of a topic a text has; at most half if it only has their owner, "Bev"."""
    if topic.lower() in text.lower():
        return 1
    head, found = _OWNER.sub("", topic), list_stems(text)
    has_word = bool({*head.lower().split()} & {*text.lower().split()})  # a short one, "ex", has no stem
    names_head = head == topic or has_word or share_stems(list_stems(head), found)
    if not names_head and not is_of_kind(text, topic):
        return MIN_PARTIAL_SHARE * bool(share_stems(stems, found))
    share = len(share_stems(stems, found)) / max(len(stems), 1)
    return 1 if is_about(text, topic) else min(share + MIN_PARTIAL_SHARE * is_of_kind(text, topic), 1)


def _find_rest(text: str, topic: str) -> tuple[int, ...]:
    """Return the numbers of the parts that say something else than the topic, and do not refer to it."""
    parts, wanted = _list_parts(text), _find_head(text, topic)
    gone = {k for k, (_, part) in enumerate(parts) if share_stems(wanted, list_stems(part))}
    if not gone:
        return ()
    for k, (sentence, part) in enumerate(parts):
        is_same = k > 0 and sentence == parts[k - 1][0]  # "Bev lives in Whitby and she has two lads"
        refers = refers_to_other(part) if is_same else refers_back(part) or is_continuation(part)
        if k and refers and (k - 1 in gone or (k in gone and not is_same)):
            gone |= {k} if is_same else {m for m, (n, _) in enumerate(parts) if sentence - n in (0, 1)}
    stems = frozenset[str]().union(*(list_stems(parts[k][1]) for k in gone))
    return tuple(k for k, (_, part) in enumerate(parts) if k not in gone and not share_stems(list_stems(part), stems))


def _find_head(text: str, topic: str) -> frozenset[str]:
    """Return the words of a topic that tell what it is, without its owner, if a text has them: "Bev's lads"."""
    head = list_stems(_OWNER.sub("", topic))
    return head if share_stems(head, list_stems(text)) else list_stems(topic)


def _list_parts(text: str) -> list[tuple[int, str]]:
    """Return the clauses that can stand alone, else the sentences, each behind the number of its sentence."""
    return [(n, one) for n, sentence in enumerate(split_sentences(text)) for one in split_alone(sentence)]


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
            memory_id = await _restore(tx, row, mark_rest(rest, FORGOTTEN), ctx)
            if any(one.kind == "fact" for one in derived):  # what else was read in it stays known
                told = {name: row[name] for name in ("role", "name", "said_at", "trust", "origin", "said_on")}
                line = EpisodeMessage(**told, content=rest, memory_id=memory_id, is_parsed=False)
                await learn_again(tx, line, source=describe_source(row["session"]), ctx=ctx)
    return len(rows)


def _divide(text: str, kept: Collection[int]) -> tuple[list[str], str]:
    """Return the parts of a text that are removed, behind each sentence that loses some, and the text that stays."""
    parts, removed, rest = _list_parts(text), list[str](), list[str]()
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
