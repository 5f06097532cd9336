"""Two agents with the same life, and every row of it, for tests of who sees what."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from newton.agent.actions import action_store, permissions
from newton.agent.actions.action_store import ToolAction
from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.permissions import ToolPermission
from newton.agent.actions.tool_contracts import keep_contracts
from newton.agent.events import publish
from newton.agent.llm import failing_models, usage
from newton.agent.llm.usage import UsageRecord
from newton.agent.maintenance.artifact_vectors import embed_artifacts
from newton.agent.prompt_records import prompt_store
from newton.agent.prompt_records.prompt_encoder import SentRequest
from newton.agent.prompt_records.prompt_store import CallOutcome
from newton.agent.prompt_records.spans import NO_TOKENS, PromptOrigin, to_spans
from newton.agent.reconciliation.line_changes import LineChange, insert_changes
from newton.agent.reconciliation.proposal_log import record_answer
from newton.agent.services import memory_moves
from newton.agent.services.working_memory import WorkingMemory
from newton.brain import decisions, guardrails
from newton.brain.calibration import snapshots
from newton.brain.decision_codec import DecisionReview
from newton.brain.guardrails import EditContext
from newton.brain.guardrails import GuardrailRule as Guard
from newton.clock import ManualClock
from newton.cognition import relevance_model, working_set
from newton.cognition.assembly.render import count_header_tokens
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import TurnRecord
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.relevance_model import CorrectionFit
from newton.cognition.request import ContextBuildRequest
from newton.cognition.working_set import SessionScope
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.content.skills import SkillFile
from newton.db.pool import Database, Tx
from newton.dialogue import (
    artifact_store,
    branches,
    context_injections,
    log,
    message_queues,
    response_store,
    session_close,
    sessions,
    tasks,
)
from newton.dialogue.artifact_store import NewArtifact
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.branches import SessionExcerpt
from newton.dialogue.brief import brief_store
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.entry_store import CompactionRun
from newton.dialogue.log import PromptBlock
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.response_store import ResponseRecord
from newton.heart import censors, documents, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_store
from newton.heart.episodes import NewEpisode
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import validate_event
from newton.heart.facts import attributes, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.items import item_store
from newton.heart.items.item_store import ItemAddress
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.reconciliation.reconciling_types import CheckedAnswer, CheckedItem
from newton.ids import derive_model_id, new_id
from newton.memory import agents, foreign_readings, memory_list, store
from newton.memory.forgetting import forget
from newton.memory.memory import WriteContext
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions, ToolDefinition
from newton.providers.fakes import HashEmbedder
from newton.runtime.access import tokens
from newton.runtime.access.tokens import TokenDraft
from newton.runtime.api import idempotency as kept
from newton.runtime.api.idempotency import IdempotentRequest, IdempotentResponse
from newton.runtime.jobs import queue
from tests.db.conversing import entry
from tests.db.deciding import REDIS, recorded
from tests.support import NOON, agent_scope, count, ground, teller

SESSION = "kitchen"
FACTS = "select memory_id from memory.memories where kind = 'fact' and agent_id = $1"
STOVE_LOG = NewArtifact(
    name="stove.log",
    kind="upload",
    media_type="text/plain",
    trust="tool",
    text="the stove is hot\nthe kettle boils over\n",
)
WORDS = ("the kettle is in the blue cupboard", "thanks", "and the cups", "beside it", "good")


def statement(ref: str, content: str) -> NewFact:
    return NewFact(ref=ref, content=content, valid_from=NOON, subject="kettle", attribute="place")


async def live(db: Database, name: str) -> UUID:
    """The same life for whoever lives it: at least one row in every table of agents."""
    agent_id = await agents.get_or_create_agent(db, name, now=NOON)
    ctx = teller(agent_id)
    async with db.transaction(agent_id) as tx:
        await a_long_text(tx, ctx)
        session_id = await sessions.ensure_session(tx, agent_id=agent_id, ref=SESSION, now=NOON)
        lines = [Message(role="user", content=words, said_at=NOON) for words in WORDS]
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        await fact_store.add_facts(
            tx,
            [statement("f1", "The kettle is blue"), statement("f2", "Cups are white")],
            ctx=ground(ctx),
        )
        await fact_store.add_facts(tx, [statement("f3", "The kettle is blue")], ctx=ground(ctx))
        output = Message(role="tool", name="stove", content="the kettle boils", said_at=NOON)
        await sessions.append(tx, [output], session_id=session_id, ctx=ctx)
        await ArtifactWriter(session_id=session_id, ctx=ctx).update(tx)
        await conversing(tx, session_id, ctx)
        await episodes.add_episodes(tx, [told("e1")], ctx=ctx)
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
        at = SessionScope(agent_id=agent_id, session_id=session_id, now=NOON, capacity=1_000)
        await working_set.add_messages(tx, range(len(lines)), scope=at)
        await all_kinds(tx, ctx)
        await a_line_summary(tx, ctx)
        await an_identity(tx, ctx)
        await some_tasks(tx, session_id, ctx)
        await a_daemon(tx, agent_id)
    await EmbeddingOutbox(db, HashEmbedder(), agent_id).drain(limit=4)  # the long text, which is the oldest, and lines
    await embed_artifacts(agent_scope(agent_id=agent_id, db=db, embedder=HashEmbedder()))
    bundle = await contexts(db).build(
        ContextBuildRequest(agent_id=agent_id, input="where is the kettle?", tokens=500, session_id=session_id)
    )
    async with db.transaction(agent_id) as tx:
        await bundle_store.insert_turn(tx, served(bundle, session_id))
        await a_prompt(tx, bundle, session_id)
    await desk(db, agent_id, session_id).create_context()
    return agent_id


async def a_line_summary(tx: Tx, ctx: WriteContext) -> None:
    await a_reading(tx, ground(ctx))
    line = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange'")
    await message_queues.save_summary(tx, "the kettle", "kettle", memory_id=line, max_tokens=10, ctx=ctx)


async def a_reading(tx: Tx, ctx: LifecycleContext) -> None:
    """What a model proposed after it had read a message, and what that changed."""
    line = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange' order by memory_id limit 1")
    fact = await tx.fetchval("select memory_id from memory.memories where kind = 'fact' order by memory_id limit 1")
    answer = CheckedAnswer(kept=(CheckedItem(op="same", line=None),), dropped=())
    await record_answer(tx, answer, model="scripted", malformed=1, ctx=ctx)
    await insert_changes(tx, [LineChange("confirmed", fact, line)], ctx=ctx)
    move = {"memory_id": fact, "target": "person", "trust": "agent"}
    await memory_moves.SQL["insert_move"].execute(tx, agent_id=ctx.agent_id, move_id=new_id(), **move)


async def a_prompt(tx: Tx, bundle: Bundle, session_id: UUID) -> None:
    """The record of what a model was sent."""
    block = PromptBlock(kind="system", position=0, text="Be kind.", tokens=3, edition="1", bundle_id=bundle.bundle_id)
    origin = PromptOrigin(
        session_id=session_id, input_position=0, loaded=(), bundle_id=bundle.bundle_id, new_blocks=(block,)
    )
    outcome = CallOutcome(bundle.bundle_id, "stop")
    await prompt_store.insert_prompt(tx, SENT, origin, outcome, agent_id=bundle.agent_id, now=NOON)


async def a_long_text(tx: Tx, ctx: WriteContext) -> None:
    """A passage that is divided into windows."""
    text = " ".join(f"Pot {n} of the shelf holds {n} cups of green tea." for n in range(1, 31))
    source = DocumentSource(ref="/pots.md", title="Pots", format="markdown")
    await documents.replace_passages(tx, source, [TextChunk("Shelf", text, count(text))], ctx=ctx)


async def a_daemon(tx: Tx, agent_id: UUID) -> None:
    """What a daemon keeps: who may call it, what it answered, what it told, what is due, and what a model used."""
    await permissions.set_permission(tx, _permission(agent_id), agent_id=agent_id)
    await action_store.insert_action(tx, _action(agent_id), agent_id=agent_id)
    await keep_contracts(tx, [TOOL], agent_id=agent_id, now=NOON)
    await tokens.create_token(tx, TokenDraft("laptop"), agent_id=agent_id, now=NOON)
    await kept.save_response(tx, IdempotentRequest(agent_id, "k1", bytes(32)), IdempotentResponse(201, "{}"), now=NOON)
    publish("memory.remembered", {"status": "new"}, agent_id=agent_id, now=NOON)
    await queue.enqueue(tx, "embed", agent_id=agent_id)
    project = {"project_agent_id": UUID(int=agent_id.int + 1), "name": "shop", "now": NOON}
    await agents.SQL["insert_project"].execute(tx, agent_id=agent_id, **project)
    reply = ChatReply(text="yes", model="scripted", input_tokens=10, output_tokens=2, estimated=True)
    await usage.record(tx, UsageRecord(reply, "turn"), agent_id=agent_id, now=NOON)
    failed = {"agent_id": agent_id, "purpose": "reconcile", "model": "scripted", "failed_at": NOON}
    await failing_models.SQL["record_failure"].execute(tx, **failed, failure="It does not answer.")
    read = teller(agent_id, count_tokens=count, trust="agent", now=NOON)
    await foreign_readings.record_reading(tx, "web", ["mcp"], ctx=read)


async def some_tasks(tx: Tx, session_id: UUID, ctx: WriteContext) -> None:
    """Tasks of the session, and a long output of them."""
    await artifact_store.add(tx, [STOVE_LOG], session_id=session_id, ctx=ctx)
    await tasks.push(tx, "find the kettle", session_id=session_id, ctx=ctx)
    await tasks.push(tx, "look into the cupboard", session_id=session_id, ctx=ctx)
    await tasks.pop(tx, "it is there", session_id=session_id, ctx=ctx)


SENT = SentRequest(
    model="scripted",
    messages=[ChatMessage("system", "Be kind to the kettle.")],
    spans=[to_spans(("Be kind to the kettle.", "instructions"))],
    options=RequestOptions(),
    max_tokens=100,
    part_tokens=NO_TOKENS,
)
RESPONSE = ResponseRecord(
    response_id=UUID(int=1),
    previous_id=None,
    model="newton",
    status="completed",
    incomplete_reason=None,
    usage={"total_tokens": 3},
    metadata={"ticket": "12"},
    created_at=NOON,
    completed_at=NOON,
)


async def briefed(tx: Tx, session_id: UUID, ctx: WriteContext) -> None:
    """A deadline that was replaced by another."""
    update = await brief_store.load_update(tx, session_id=session_id, ctx=ctx)
    for position, text in enumerate(("The deadline is 12 June.", "The deadline moved to 20 June.")):
        message = Message(role="user", content=text, said_at=NOON)
        update.read_message(StoredMessage(session_id=session_id, position=position, tokens=1, message=message), None)
    await brief_store.save(tx, update, session_id=session_id, ctx=ctx)


async def conversing(tx: Tx, session_id: UUID, ctx: WriteContext) -> None:
    """A branch with lines of its own, and a part that was told shorter and is shown again."""
    of: dict[str, UUID] = {"agent_id": ctx.agent_id, "session_id": session_id}
    made = entry(0, 1, before=100)
    assert await entry_store.save_if_unchanged(tx, [made], sources=await log.load_sources(tx, **of), **of)
    read_again = await tx.fetchval(
        "select memory_id from memory.memories where thread_id = $1 and kind = 'exchange' and position = 0", session_id
    )
    await entry_store.record_rereads(tx, [read_again], ctx=ctx)
    await entry_store.restore(tx, made.entry_id, session_id=session_id, ctx=ctx)
    assert await log.acquire_lease(tx, made.entry_id, "turn", seconds=60, **of)
    await entry_store.record_run(tx, CompactionRun("threshold", NOON, 1.5, 100, 10), **of)
    await briefed(tx, session_id, ctx)
    branch_id = await branches.create_branch(tx, "cellar", parent_id=session_id, from_position=None, ctx=ctx)
    await response_store.store(tx, RESPONSE, [], session_id=branch_id, agent_id=ctx.agent_id)
    assert RESPONSE.response_id in await response_store.find(tx, [RESPONSE.response_id], agent_id=ctx.agent_id)
    await sessions.append(
        tx, [Message(role="user", content="I prefer it dry.", said_at=NOON)], session_id=branch_id, ctx=ctx
    )
    excerpt = SessionExcerpt(ref="cellar", session_id=branch_id, first=5, last=5)
    made = await branches.inject(tx, excerpt, session_id=session_id, ctx=ctx)
    await branches.eject(tx, made.injection_id, session_id=session_id, ctx=ctx)
    await branches.inject(tx, excerpt, session_id=session_id, ctx=ctx)
    await context_injections.add_text(tx, "The tea is at five.", session_id=session_id, ctx=ctx, max_tokens=100)


def served(bundle: Bundle, session_id: UUID) -> TurnRecord:
    return TurnRecord(
        agent_id=bundle.agent_id,
        session_id=session_id,
        bundle_id=bundle.bundle_id,
        created_at=NOON,
        method="built",
        reason="the session has no context yet",
        answered_by="model",
        input_position=0,
        reply_position=1,
    )


def desk(db: Database, agent_id: UUID, session_id: UUID, *, capacity: int = 128_000) -> WorkingMemory:
    """The working memory of a session."""
    return WorkingMemory(
        session_id=session_id,
        profiles=load_profiles(),
        frames=load_frames(),
        capacity=capacity,
        model_id=derive_model_id(HashEmbedder.identity),
        scope=agent_scope(agent_id=agent_id, db=db, clock=ManualClock(NOON)),
    )


CORRECTED = CorrectionFit(contexts=50, items=300, used=60, loss_before=0.5, loss_after=0.4)


async def all_kinds(tx: Tx, ctx: WriteContext) -> None:
    """What facts and dialogue do not bring along."""
    lifted = ground(ctx)
    rule = CensorRule(trigger="boil the kettle dry", reason="it breaks")
    (censor,) = await censors.add_rules(tx, [rule], ctx=lifted)
    await engine.record_activations(tx, "censor", [censor], stage="input", ctx=lifted)
    await attributes.set_cardinality(tx, "place", agent_id=ctx.agent_id, single=False)
    skill = SkillFile(name="tea", description="Make tea.", core=("Boil water.",))
    await procedures.add_procedure(tx, skill, ctx=lifted)
    source = DocumentSource(ref="/kettle.md", title="Kettles", format="markdown")
    await documents.replace_passages(tx, source, [TextChunk("Use", "Fill it with water.", 6)], ctx=ctx)
    await episodes.add_episodes(tx, [replace(told("e2"), content="Tea and talk. " * 300)], ctx=ctx)
    much_later = replace(lifted, now=NOON + timedelta(days=100))
    rows = await tx.fetch(
        "select memory_id from memory.memories where kind = 'episode' and agent_id = $1", ctx.agent_id
    )
    await review(tx, much_later, "episode", [row["memory_id"] for row in rows])
    first, second = [
        row["memory_id"]
        for row in await tx.fetch(
            "select memory_id from memory.memories where kind = 'fact' and agent_id = $1", ctx.agent_id
        )
    ]
    await near_edited_and_an_item(tx, first, second, ctx)
    named = NewFact(ref="f4", content="Mira met Priya in Oslo yesterday", valid_from=NOON)
    await fact_store.add_facts(tx, [named], ctx=lifted)
    await entity_store.index_mentions(tx, ctx=ctx)
    happened = NewEvent(ref="h1", event=validate_event("file_read", NOON, {"path": "kettle.txt"}))
    await event_store.record_events(tx, [happened], ctx=ctx)
    guard = Guard(name="tea-first", expression="confidence < 0.1", severity="warn", message="Have tea.", source="own")
    await guardrails.add(tx, guard, {}, ctx=EditContext(agent_id=ctx.agent_id, now=NOON, origin="cli"))
    (decision_id,) = await recorded(tx, REDIS, ctx=ctx)
    await decisions.add_thought(tx, decision_id, "what if it is cold?", ctx=ctx)
    await decisions.review(tx, decision_id, DecisionReview(verdict="success", at=NOON, how="hand"), ctx=ctx)
    await judged(tx, ctx)
    gone = NewFact(ref="f5", content="this is forgotten again", valid_from=NOON)
    await fact_store.add_facts(tx, [gone], ctx=lifted)
    await forget(
        tx, [await fact_store.find_fact_id(tx, gone, agent_id=ctx.agent_id)], derived=False, reason="a test", ctx=ctx
    )


async def judged(tx: Tx, ctx: WriteContext) -> None:
    await snapshots.take_snapshot(tx, agent_id=ctx.agent_id, now=NOON, count_tokens=count)
    await relevance_model.add_correction(tx, CORRECTED, agent_id=ctx.agent_id, model="shipped", now=NOON)


async def near_edited_and_an_item(tx: Tx, first: UUID, second: UUID, ctx: WriteContext) -> None:
    await store.add_links(tx, "near", [(first, second)], ctx=ctx)
    await memory_list.record_edits(tx, "importance", {first: None}, "8", author="the user", ctx=ctx)
    await item_store.put_item(tx, ItemAddress(("kitchen",), "tea"), {"leaf": "green"}, text="green tea", ctx=ctx)


async def an_identity(tx: Tx, ctx: WriteContext) -> None:
    hand = IdentityEdit(ctx=ctx)
    await identity_store.add(tx, "value", "Tea before talk", edit=hand)
    await identity_store.propose(
        tx, [StandingInstruction("preference", "I prefer green tea")], message_ref=None, edit=hand
    )


def told(ref: str) -> NewEpisode:
    return NewEpisode(ref=ref, title="Tea", content="We had tea from the kettle.", started_at=NOON, ended_at=NOON)


def contexts(db: Database) -> ContextBuilder:
    return ContextBuilder(
        db=db,
        clock=ManualClock(NOON),
        count_tokens=count,
        frames=load_frames(),
        profiles=load_profiles(),
        embedder=HashEmbedder(),
        classifier=None,
        header_tokens=count_header_tokens(count),
    )


TOOL = ExternalTool(
    server="files", name="write", description="Write.", definition=ToolDefinition("files__write", {}),
    required=frozenset(), fingerprint=bytes(32),
)  # fmt: skip


def _permission(agent_id: UUID) -> ToolPermission:
    return ToolPermission(
        permission_id=agent_id, server="files", tool="write", verdict="allow", fingerprint=bytes(32), session_id=None,
        session=None, source="person", created_at=NOON,
    )  # fmt: skip


def _action(agent_id: UUID) -> ToolAction:
    return ToolAction(
        action_id=agent_id, session_id=agent_id, server="files", tool="write", arguments_hash=bytes(32),
        permission="always", outcome="success", started_at=NOON, finished_at=NOON,
    )  # fmt: skip
