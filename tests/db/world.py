"""Two agents with the same life, and every row of it, for tests of who sees what."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from newton.agent import ledger
from newton.agent.telling import tell
from newton.agent.working import WorkingMemory
from newton.brain import decisions, guardrails, snapshots
from newton.brain.guarding import Rule as Guard
from newton.brain.guardrails import Author
from newton.brain.stating import Review
from newton.clock import SteppedClock
from newton.cognition import bundles, workingset
from newton.cognition.bundle import Bundle
from newton.cognition.bundles import Served
from newton.cognition.context import Contexts
from newton.cognition.render import headers
from newton.cognition.request import Request
from newton.cognition.workingset import Sitting
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.content.skills import Skill
from newton.db.pool import Database, Tx
from newton.dialogue import abridging, branches, closing, entries, holding, log, sessions, tasks
from newton.dialogue.artifacts import Writer
from newton.dialogue.branches import Excerpt
from newton.dialogue.entries import Run
from newton.dialogue.lines import Line
from newton.heart import (
    activations,
    attributes,
    censors,
    documents,
    entities,
    episodes,
    events,
    facts,
    identity,
    procedures,
)
from newton.heart.censors import Rule
from newton.heart.chunking import Chunk
from newton.heart.documents import Source
from newton.heart.episodes import Experience
from newton.heart.events import Happening
from newton.heart.facts import Statement
from newton.heart.happenings import checked
from newton.heart.identity import Hand
from newton.heart.lifecycle.engine import review
from newton.heart.wishes import Wish
from newton.ids import model_id
from newton.memory import agents, store
from newton.memory.forgetting import forget
from newton.memory.memory import Teller
from newton.memory.outbox import Outbox
from newton.providers.chat import Reply
from newton.providers.offline import HashEmbedder
from newton.runtime.access import tokens
from newton.runtime.answers import kept
from newton.runtime.answers.kept import Answer, Asked
from newton.runtime.jobs import queue
from tests.db.conversing import entry
from tests.db.deciding import REDIS, recorded
from tests.support import NOON, agent_scope, count, ground, teller

SESSION = "kitchen"
FACTS = "select memory_id from memory.memories where kind = 'fact' and agent_id = $1"
WORDS = ("the kettle is in the blue cupboard", "thanks", "and the cups", "beside it", "good")


def statement(ref: str, content: str) -> Statement:
    return Statement(ref=ref, content=content, at=NOON, subject="kettle", attribute="place")


async def live(db: Database, name: str) -> UUID:
    """The same life for whoever lives it: at least one row in every table of agents."""
    agent_id = await agents.agent(db, name, now=NOON)
    ctx = teller(agent_id)
    async with db.work(agent_id) as tx:
        session_id = await sessions.session(tx, agent_id=agent_id, ref=SESSION, now=NOON)
        lines = [Line(role="user", content=words, said_at=NOON) for words in WORDS]
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        await facts.learn(
            tx,
            [statement("f1", "The kettle is blue"), statement("f2", "Cups are white")],
            ctx=ground(ctx),
        )
        await facts.learn(tx, [statement("f3", "The kettle is blue")], ctx=ground(ctx))
        output = Line(role="tool", name="stove", content="the kettle boils", said_at=NOON)
        await sessions.append(tx, [output], session_id=session_id, ctx=ctx)
        await Writer(session_id=session_id, ctx=ctx).note(tx)
        await conversing(tx, session_id, ctx)
        await episodes.keep(tx, [told("e1")], ctx=ctx)
        await closing.close(tx, session_id=session_id, ctx=ctx)
        at = Sitting(agent_id=agent_id, session_id=session_id, now=NOON, capacity=1_000)
        await workingset.hold_lines(tx, range(len(lines)), at=at)
        await all_kinds(tx, ctx)
        line = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange'")
        await abridging.keep(tx, "the kettle", "kettle", of=line, most=10, ctx=ctx)
        await an_identity(tx, ctx)
        await some_tasks(tx, session_id, ctx)
        await a_daemon(tx, agent_id)
        reply = Reply(text="yes", model="scripted", input_tokens=10, output_tokens=2, estimated=True)
        await ledger.record(tx, reply, agent_id=agent_id, purpose="turn", now=NOON)
    await Outbox(db, HashEmbedder(), agent_id).drain(most=3)
    bundle = await contexts(db).build(
        Request(agent_id=agent_id, input="where is the kettle?", tokens=500, session_id=session_id)
    )
    async with db.work(agent_id) as tx:
        await bundles.served(tx, served(bundle, session_id))
    await desk(db, agent_id, session_id).create_context()
    return agent_id


async def a_daemon(tx: Tx, agent_id: UUID) -> None:
    """What a daemon keeps: who may call it, what it answered, what it told, and what is due."""
    await tokens.make(tx, agent_id=agent_id, name="laptop", scope="write", now=NOON)
    await kept.keep(tx, Asked(agent_id, "k1", bytes(32)), Answer(201, "{}"), now=NOON)
    tell("memory.remembered", {"learnt": "new"}, agent_id=agent_id, now=NOON)
    await queue.add(tx, "embed", agent_id=agent_id)


async def some_tasks(tx: Tx, session_id: UUID, ctx: Teller) -> None:
    await tasks.push(tx, "find the kettle", session_id=session_id, ctx=ctx)
    await tasks.push(tx, "look into the cupboard", session_id=session_id, ctx=ctx)
    await tasks.pop(tx, "it is there", session_id=session_id, ctx=ctx)


async def conversing(tx: Tx, session_id: UUID, ctx: Teller) -> None:
    """A branch with lines of its own, and a part that was told shorter and is shown again."""
    of: dict[str, UUID] = {"agent_id": ctx.agent_id, "session_id": session_id}
    made = entry(0, 1, before=100)
    assert await entries.keep(tx, [made], seen=await log.seen(tx, **of), **of)
    await entries.restore(tx, made.entry_id, session_id=session_id, ctx=ctx)
    assert await holding.hold(tx, made.entry_id, "turn", seconds=60, **of)
    await entries.record(tx, Run("threshold", NOON, 1.5, 100, 10), **of)
    await branches.checkpoint(tx, "tea", session_id=session_id, ctx=ctx)
    branch_id = await branches.branch(tx, "cellar", parent_id=session_id, at="tea", ctx=ctx)
    await sessions.append(
        tx, [Line(role="user", content="and in the cellar?", said_at=NOON)], session_id=branch_id, ctx=ctx
    )
    excerpt = Excerpt(ref="cellar", session_id=branch_id, first=5, last=5)
    made = await branches.inject(tx, excerpt, session_id=session_id, ctx=ctx)
    await branches.eject(tx, made.injection_id, session_id=session_id, ctx=ctx)
    await branches.inject(tx, excerpt, session_id=session_id, ctx=ctx)


def served(bundle: Bundle, session_id: UUID) -> Served:
    return Served(
        agent_id=bundle.agent_id,
        session_id=session_id,
        bundle_id=bundle.bundle_id,
        at=NOON,
        how="built",
        because="the session has no context yet",
        answered_by="model",
        asked=0,
        replied=1,
    )


def desk(db: Database, agent_id: UUID, session_id: UUID, *, capacity: int = 128_000) -> WorkingMemory:
    """The working memory of a session."""
    return WorkingMemory(
        session_id=session_id,
        profiles=load_profiles(),
        frames=load_frames(),
        capacity=capacity,
        model_id=model_id(HashEmbedder.identity),
        scope=agent_scope(agent_id=agent_id, db=db, clock=SteppedClock(NOON)),
    )


async def all_kinds(tx: Tx, ctx: Teller) -> None:
    """What facts and dialogue do not bring along."""
    lifted = ground(ctx)
    rule = Rule(trigger="boil the kettle dry", reason="it breaks")
    (censor,) = await censors.forbid(tx, [rule], ctx=lifted)
    await activations.activate(tx, "censor", [censor], place="input", ctx=lifted)
    await attributes.declare(tx, "place", agent_id=ctx.agent_id, single=False)
    skill = Skill(name="tea", description="Make tea.", core=("Boil water.",))
    await procedures.learn(tx, skill, ctx=lifted)
    source = Source(ref="/kettle.md", title="Kettles", format="markdown")
    await documents.take(tx, source, [Chunk("Use", "Fill it with water.", 6)], ctx=ctx)
    await episodes.keep(tx, [replace(told("e2"), content="Tea and talk. " * 300)], ctx=ctx)
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
    await store.connect(tx, "near", [(first, second)], ctx=ctx)
    named = Statement(ref="f4", content="Mira met Priya in Oslo yesterday", at=NOON)
    await facts.learn(tx, [named], ctx=lifted)
    await entities.read(tx, ctx=ctx)
    happened = Happening(ref="h1", event=checked("file_read", NOON, {"path": "kettle.txt"}))
    await events.record(tx, [happened], ctx=ctx)
    guard = Guard(name="tea-first", expression="confidence < 0.1", severity="warn", message="Have tea.", source="own")
    await guardrails.add(tx, guard, {}, ctx=Author(agent_id=ctx.agent_id, now=NOON, origin="cli"))
    (decision_id,) = await recorded(tx, REDIS, ctx=ctx)
    await decisions.think(tx, decision_id, "what if it is cold?", ctx=ctx)
    await decisions.review(tx, decision_id, Review(verdict="success", at=NOON, how="hand"), ctx=ctx)
    await snapshots.take(tx, agent_id=ctx.agent_id, now=NOON, count=count)
    gone = Statement(ref="f5", content="this is forgotten again", at=NOON)
    await facts.learn(tx, [gone], ctx=lifted)
    await forget(tx, [await facts.telling(tx, gone, agent_id=ctx.agent_id)], derived=False, because="a test", ctx=ctx)


async def an_identity(tx: Tx, ctx: Teller) -> None:
    hand = Hand(ctx=ctx)
    await identity.add(tx, "value", "Tea before talk", hand=hand)
    await identity.propose(tx, [Wish("preference", "I prefer green tea")], spot=None, hand=hand)


def told(ref: str) -> Experience:
    return Experience(ref=ref, title="Tea", content="We had tea from the kettle.", started_at=NOON, ended_at=NOON)


def contexts(db: Database) -> Contexts:
    return Contexts(
        db=db,
        clock=SteppedClock(NOON),
        count=count,
        frames=load_frames(),
        profiles=load_profiles(),
        embedder=HashEmbedder(),
        likeness=None,
        header_tokens=headers(count),
        source_seconds=10.0,
    )
