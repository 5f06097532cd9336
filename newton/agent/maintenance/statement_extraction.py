"""Extraction of facts from what users said, without a model: by the classifier, and from what replaces a known fact.

A statement that replaces a fact is worth remembering whatever its form: the classifier of statements rejects "the doc
halved it to 10", which is important beside "I take 20 mg in the morning".
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from pgvector import HalfVector

from newton.agent.maintenance.extracted_facts import (
    ExtractionResult,
    link_to_episode,
    restates_request,
    store_facts,
    to_fact,
)
from newton.agent.maintenance.speaker_lines import attribute_lines, needs_names
from newton.agent.maintenance.told_corrections import MessageReading, apply_correction, apply_denials
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.dialogue import message_queues as conversations
from newton.dialogue.message_queues import EpisodeLines, EpisodeMessage, OpenLines
from newton.errors import ProviderError
from newton.heart.facts.fact_store import NewFact
from newton.heart.facts.partial_changes import judge_parts, split_parts
from newton.heart.identity import identity_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.statements.answers import find_question
from newton.heart.statements.change_detection import detect_change, is_comparable, load_model
from newton.heart.statements.commitment import is_in_role, list_denials
from newton.heart.statements.corrections import find_correction, only_announces
from newton.heart.statements.fragments import keep_own_words
from newton.heart.statements.statement_selection import (
    MessageContext,
    list_spans,
    select_statements,
)
from newton.ids import derive_model_id
from newton.memory.memory import UNTRUSTED_TIERS
from newton.providers.embedding import Embedder, Vector
from newton.providers.minilm import read_pairs

SQL = load("newton.agent.maintenance", "statement_extraction.sql")

MAX_FACTS = 5  # of the facts nearest to a message, that its parts are compared with


class StatementTools(NamedTuple):
    """The embedder and the function that returns the names of the user, which the extraction of statements uses."""

    embedder: Embedder | None = None
    read_names: Callable[[], Awaitable[Sequence[str]]] | None = None


NO_TOOLS = StatementTools()
_Lines = TypeVar("_Lines", EpisodeLines, OpenLines)


class _NearFact(NamedTuple):
    text: str
    vector: Vector


async def find_changing_parts(
    db: Database,
    ctx: LifecycleContext,
    spans: Mapping[str, Sequence[str]],
    vectors: Mapping[str, Vector],
    *,
    model_id: UUID,
) -> dict[str, str]:
    """Return the part of each message that most clearly replaces a known fact, by message; others are left out.

    `spans` are the parts of each message (`list_spans`), `vectors` those of messages and parts by the model for which
    change detection was trained.
    """
    if not spans:
        return {}
    near: defaultdict[str, list[_NearFact]] = defaultdict(list)
    async with db.transaction(ctx.agent_id) as tx:
        rows = await SQL["find_nearest_facts"].fetch_all(
            tx,
            agent_id=ctx.agent_id,
            model_id=model_id,
            vectors=[HalfVector(vectors[message]) for message in spans],
            max_rows=MAX_FACTS,
        )
    names = list(spans)
    for row in rows:
        near[names[row["position"] - 1]].append(_NearFact(row["text"], row["vector"].to_numpy().astype("float32")))
    return await asyncio.to_thread(_choose_parts, spans, near, vectors)


def _choose_parts(
    spans: Mapping[str, Sequence[str]], near: Mapping[str, Sequence[_NearFact]], vectors: Mapping[str, Vector]
) -> dict[str, str]:
    """Return the part of each message that is the clearest update of a fact near it; the shorter one of equal parts."""
    pairs = {
        (fact.text, part): fact
        for message, parts in spans.items()
        for part in parts
        for fact in near.get(message, ())
        if is_comparable(fact.text, part, cosine=float(fact.vector @ vectors[part]))
    }
    readings = read_pairs(list(pairs))
    clear = defaultdict[str, float](float)
    for (older, part), fact in pairs.items():
        cosine = float(fact.vector @ vectors[part])
        verdict = detect_change(older, part, cosine=cosine, reading=readings[older, part])
        if verdict.is_partial:
            parts_read = read_pairs([(one.text, part) for one in split_parts(older)])
            verdict = verdict._replace(kind=judge_parts(older, part, parts_read)[0])
        clear[part] = max(clear[part], verdict.probability if verdict.kind == "update" else 0.0)
    found = {message: max(parts, key=lambda part: clear[part]) for message, parts in spans.items()}
    return {message: part for message, part in found.items() if clear[part]}


async def extract_statements(
    db: Database,
    ctx: LifecycleContext,
    *,
    limit: int,
    tools: StatementTools = NO_TOOLS,
    ended_before: datetime | None = None,
    is_final: bool = True,
) -> ExtractionResult:
    """Store the facts that users state in up to `limit` unread ended conversations, oldest first; return the counts.

    With `ended_before`, only of those that ended before this time. A fact gets the origin and the trust tier of the
    message that states it. Unless the extraction `is_final`, a model reads the conversations later.
    """
    result, mark = ExtractionResult(), conversations.mark_read if is_final else conversations.mark_parsed
    async with db.transaction(ctx.agent_id) as tx:
        unread = await conversations.find_unread(
            tx, agent_id=ctx.agent_id, limit=limit, ended_before=ended_before, only_unparsed=not is_final
        )
    for conversation in await _attribute(unread, tools):
        try:
            changing = await find_changes(db, ctx, tools.embedder, conversation.messages)
        except ProviderError:
            changing = {}
        async with db.transaction(ctx.agent_id) as tx:
            if await mark(tx, conversation.memory_id, ctx=ctx):
                result += ExtractionResult(1, await store_statements(tx, conversation, changing, ctx=ctx))
    return result


async def learn_open_sessions(
    db: Database, ctx: LifecycleContext, *, limit: int, tools: StatementTools, only_recent: bool = False
) -> int:
    """Store the facts that users state in up to `limit` open sessions; return how many were not known before.

    With `only_recent`, only sessions of the latest memories are read. Messages are read once. If the embedder fails,
    nothing is stored, and the next call reads the same messages.
    """
    async with db.transaction(ctx.agent_id) as tx:
        found = await conversations.find_open(tx, agent_id=ctx.agent_id, limit=limit, only_recent=only_recent)
    unread = await _attribute(found, tools)
    try:
        messages = [message for lines in unread for message in lines.messages]
        changing = await find_changes(db, ctx, tools.embedder, messages)
    except ProviderError:
        return 0
    count = 0
    for lines in unread:
        async with db.transaction(ctx.agent_id) as tx:
            if await conversations.mark_open_read(tx, lines, ctx=ctx):
                count += await _store_open_statements(tx, lines, changing, ctx=ctx)
    return count


async def _attribute(found: Sequence[_Lines], tools: StatementTools) -> list[_Lines]:
    """Return the conversations with each line under who said it."""
    is_needed = any(needs_names(one.messages) for one in found)
    names = await tools.read_names() if is_needed and tools.read_names else ()
    return [replace(one, messages=attribute_lines(one.messages, names)) for one in found]


async def find_changes(
    db: Database, ctx: LifecycleContext, embedder: Embedder | None, messages: Sequence[EpisodeMessage]
) -> dict[str, str]:
    """Return the part of each message of a user that replaces a known fact, by message.

    Return none if the embedder is not the one for which change detection was trained. Raises ProviderError if it fails.
    """
    if embedder is None or embedder.identity != load_model().vector_model:
        return {}
    user_texts = [message.content for message in messages if message.role == "user" and not message.is_parsed]
    spans = {content: parts for content in user_texts if (parts := list_spans(content))}
    texts = list(dict.fromkeys(text for content, parts in spans.items() for text in (content, *parts)))
    vectors = dict(zip(texts, await embedder.embed(texts), strict=True)) if texts else {}
    return await find_changing_parts(db, ctx, spans, vectors, model_id=derive_model_id(embedder.identity))


async def store_statements(
    tx: Tx, conversation: EpisodeLines, changing: Mapping[str, str], *, ctx: LifecycleContext
) -> int:
    """Store the facts that users state in a conversation; return how many were not known before.

    `changing` is the result of `find_changes`. A fact gets the origin and trust tier of the message that states it.
    Facts that were stored while the session went on are only linked to the episode, as a person may have retracted or
    forgotten them since.
    """
    requests = await identity_store.list_requested_lines(tx, conversation.covered, agent_id=ctx.agent_id)
    parsed = [message.memory_id for message in conversation.messages if message.is_parsed]
    known = await conversations.list_stated_facts(tx, parsed, agent_id=ctx.agent_id)
    await link_to_episode(tx, known, conversation.memory_id, ctx=ctx)
    readings = read_messages(conversation.messages, requests, changing, source=conversation.source)
    return await _store_readings(tx, readings, conversation.memory_id, ctx=ctx)


async def _store_open_statements(
    tx: Tx, lines: OpenLines, changing: Mapping[str, str], *, ctx: LifecycleContext
) -> int:
    requests = await identity_store.list_requested_lines(tx, lines.covered, agent_id=ctx.agent_id)
    readings = read_messages(lines.messages, requests, changing, source=lines.source)
    return await _store_readings(tx, readings, None, ctx=ctx)


async def learn_again(tx: Tx, message: EpisodeMessage, *, source: str, ctx: LifecycleContext) -> int:
    """Store the facts that a message states which was read before and of which a part is left; return how many."""
    return await _store_readings(tx, read_messages([message], (), {}, source=source), None, ctx=ctx)


async def _store_readings(
    tx: Tx, readings: Iterable[MessageReading], episode_id: UUID | None, *, ctx: LifecycleContext
) -> int:
    count = 0
    for reading in readings:
        message_ctx = replace(ctx, trust=reading.message.trust, origin=reading.message.origin)
        count += await store_facts(tx, reading.facts, episode_id, ctx=message_ctx) if reading.facts else 0
        count += await apply_correction(tx, reading, episode_id, ctx=message_ctx)
        count += await apply_denials(tx, reading, episode_id, ctx=message_ctx)
    return count


def read_messages(
    messages: Sequence[EpisodeMessage], requests: Sequence[str], changing: Mapping[str, str], *, source: str
) -> Iterator[MessageReading]:
    """Yield what users say in the messages of a session that were not read before. Pure.

    Statements that restate one of the `requests` are left out, and in a role-play all of them.
    """
    told, question = list[tuple[EpisodeMessage, str]](), ""
    for message in messages:
        if message.role != "user":
            question = find_question(message.content) if message.trust not in UNTRUSTED_TIERS else ""
            continue
        earlier = [one for one in told if one[0].name == message.name]
        texts = [text for _, text in earlier]
        correction = None if message.is_reported else find_correction(message.content, texts, question=question)
        if not message.is_parsed:
            context = MessageContext(texts[-1] if texts else "", question, is_in_role(texts))
            facts = _select_facts(message, requests, changing, context, source=source)
            if correction is None and only_announces(message.content, texts):
                facts = []
            elif correction:
                facts = [one for one in facts if not correction.is_repeated_in(one.content)]
            denied = [] if message.is_reported or context.is_framed else list_denials(keep_own_words(message.content))
            corrected = earlier[correction.index][0] if correction else None
            yield MessageReading(message, source, facts, corrected, correction, denied)
        # a later correction means what this one made of the sentence
        meant = correction.apply(correction.sentence) if correction else None
        told.append((message, meant or message.content))
        question = ""


def _select_facts(
    message: EpisodeMessage,
    requests: Sequence[str],
    changing: Mapping[str, str],
    context: MessageContext,
    *,
    source: str,
) -> list[NewFact]:
    """Return the facts that a user states in a message, without those that restate one of the `requests`. Pure."""
    part = changing.get(message.content)
    statements = select_statements(message.content, speaker=message.name, changing=part, context=context)
    return [to_fact(message, one, source) for one in statements if not restates_request(one.content, requests)]
