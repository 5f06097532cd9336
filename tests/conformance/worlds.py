"""What each agent of the comparison has stored before a call, and the comparable form of data and rows."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from newton.agent.prompt_records.prompt_store import CallOutcome, insert_prompt
from newton.agent.prompt_records.spans import PromptOrigin
from newton.agent.reconciliation import line_changes
from newton.agent.services.memories import FactDraft
from newton.brain.drafts import DecisionDraft, DecisionReason
from newton.cognition import relevance_model
from newton.cognition.relevance_model import AnswerCorrection, CorrectionFit
from newton.cognition.request import ContextBuildRequest
from newton.content.skills import SkillFile
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.entry_store import CompactionRun
from newton.dialogue.messages import Message, Role
from newton.dialogue.view import CompactionEntry
from newton.heart import documents
from newton.heart.censors import CensorRule
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_changes
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.items import item_store
from newton.heart.items.item_store import ItemAddress
from newton.heart.lifecycle import engine
from newton.heart.speakers import Speaker
from newton.ids import new_id
from newton.memory import agents, store
from newton.operations.caller import OperationCaller
from newton.runtime.wiring import AgentServices
from tests.db.world import SENT
from tests.stored_rows import Rows

# What differs because the doors are different processes, or is no state of the agent.
UNCOMPARED = {"runtime.idempotency_keys", "runtime.jobs", "runtime.tokens", "runtime.agents", "sequences"}
UNCOMPARED_FIELDS = {"duration_ms", "hours_since_added", "hours_since_accessed"}  # they are others at each call
# Of a context, these are others each time it is built.
BUILT_FIELDS = UNCOMPARED_FIELDS | {"timings_ms", "score", "features"}
_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\b[0-9a-f]{8}\b|\b[0-9a-f]{16}\b|(?<=#)[0-9a-f]+\b"
)
_ORIGIN = re.compile(r"^(?:http|cli|mcp|chat)(?= \d|$)")  # of a row, and of a confirmation with its day
_AUTHOR = re.compile(r"^(?:the user|token .*)$")  # of an edit
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")


async def begin_world(newton: AgentServices, speaker: Speaker = "person") -> dict[str, str]:
    """Store what the examples of the operations act on; return ids by the name of the argument or the operation.

    Facts, decisions and the episode are stated by `speaker`.
    """
    person, model = (OperationCaller(newton=newton, origin="world", speaker=one) for one in ("person", "model"))
    own = person if speaker == "person" else replace(model, newton=newton.with_trust("agent"))
    await person.censors.add(CensorRule(trigger="open the sluice", reason="villages lie below", action="block"))
    await model.censors.add(CensorRule(trigger="burn the mill", reason="it is old"))
    censors = {one.trigger: one.memory_id for one in await person.censors.list_censors()}
    facts = [
        (await own.newton.memories("world").remember(FactDraft(content=text))).memory_id
        for text in ("The crate is on shelf 4.", "Rosa keeps the keys of the mill.")
    ]
    episode = await own.newton.memories("world").remember_episode("We rowed to the island.", title="Rowing")
    skill = SkillFile(name="debugging", description="How to find the cause of a failure", core=("Read the log.",))
    await replace(person.procedures, scope=newton.scope.at("world", "tool")).put(skill)
    decision_id, other_id = await _decide(own)
    await newton.process_written("world")
    await person.identity.add("instruction", "Answer in metric units, please.")
    await person.identity.add("boundary", "Do not sell the mill.")
    await model.identity.propose("value", "Tea before talk.")
    (line, _), (proposal,) = (await person.identity.get()).tenets, await person.identity.list_proposals()
    proposals = ("accept_proposal", "reject_proposal")
    await _store_rows(own.newton, censors["open the sluice"], facts)
    await model.moves.propose(str(facts[0]), "shop")
    talk = await _talk(person)
    return {
        **talk,
        # a model closes an open item of its work
        "item_id": talk["item_id" if speaker == "person" else "open_item"],
        "settle_move.memory_id": str(facts[0]),
        "censor_id": str(censors["open the sluice"]),
        "approve_censor.censor_id": str(censors["burn the mill"]),
        # a model withdraws what it proposed
        "retire_censor.censor_id": str(censors["open the sluice" if speaker == "person" else "burn the mill"]),
        "decision_id": decision_id,
        "other_id": other_id,
        "diff.other_id": "latest",
        "memory_id": str(facts[1]),
        "line_id": str(line.tenet_id),
        "injection_id": str((await own.injections.inject_text("s", "Answer in French.")).injection_id),
        "permission_id": str(await newton.permissions("world").deny("post", "send")),
        **dict.fromkeys((f"{one}.line_id" for one in proposals), str(proposal.tenet_id)),
        "set_outcome.memory_id": str(episode.memory_id),
    }


async def _store_rows(newton: AgentServices, censor_id: UUID, facts: Sequence[UUID]) -> None:
    """Store what no operation stores: uses, links, relations, a document, a correction and an item."""
    async with newton.scope.write() as (tx, ctx):
        await engine.record_activations(tx, "censor", [censor_id], stage="action", ctx=ctx)
        await line_changes.insert_changes(tx, [line_changes.LineChange("learnt", facts[0], None)], ctx=ctx)
        await store.add_links(tx, "contradicts", [(facts[1], facts[0])], ctx=ctx)
        bond = RelationDeclaration(ref="b", source="Bob", type="helps", target="Robert Smith")
        await entity_changes.declare_relations(tx, [bond], ctx=ctx)
        chunks = [TextChunk("", text, 5) for text in ("The boat is blue.", "It is on the shore.")]
        boat = DocumentSource(ref="boat.md", title="The boat", format="markdown")
        await documents.replace_passages(tx, boat, chunks, ctx=ctx)
        fit = CorrectionFit(
            contexts=50, items=300, used=60, correction=AnswerCorrection(0.9, -0.1), validation_items=90
        )
        model = relevance_model.load_relevance_model().answer_fingerprint
        await relevance_model.add_correction(tx, fit, agent_id=ctx.agent_id, model=model, now=ctx.now)
        project = {"parent_id": ctx.agent_id, "parent": newton.settings.agent, "now": ctx.now}
        await agents.create_project(tx, "shop", **project)
        value = {"leaf": "green", "from": "the mill"}
        await item_store.put_item(tx, ItemAddress(("kitchen",), "tea"), value, text="green tea", ctx=ctx)


async def build_contexts(newton: AgentServices) -> None:
    """Build and store two contexts, for reads only: a write to a memory in them would not be compared."""
    for text in ("Who keeps the keys?", "Where is the crate?"):
        request = ContextBuildRequest(agent_id=newton.scope.agent_id, input=text, tokens=400)
        await newton.context_builder.build(request)


async def _talk(person: OperationCaller) -> dict[str, str]:
    """Store a session with a brief and tasks; return the ids of what is in it."""
    talk: Sequence[tuple[Role, str]] = (
        *(("user", "Never push the crate."), ("user", "Where is it?")),
        *(("assistant", "It is in the shed. " * 40), ("user", "Good."), ("assistant", "I still need to find the lid.")),
    )
    said = [Message(role=role, content=text, said_at=person.scope.now()) for role, text in talk]
    await person.newton.sessions("world").append("s", said)
    for text in ("The sluice is open.\n", "The sluice closed at nine.\n"):
        await person.artifacts.add("s", "build.log", text)
    tasks = await person.tasks("s")
    await tasks.push("Repair the mill", ["Find the leak", "Close the leak"])
    await tasks.fail("It is dark.")
    rule, open_item = await person.briefs.list_items("s")
    entry = CompactionEntry(
        entry_id=new_id(),
        kind="turn",
        first=0,
        last=0,
        text="A rule.",
        tokens=3,
        before=9,
        strategy="threshold",
        prompt="extractive",
        model=None,
        made_at=person.scope.now(),
    )
    run = CompactionRun("threshold", entry.made_at, 2.5, 9, 3)
    key = {"agent_id": person.scope.agent_id, "session_id": await person.find_session("s")}
    async with person.scope.transaction() as tx:
        await entry_store.insert(tx, [entry], **key)
        await entry_store.record_run(tx, run, **key)
        sent = PromptOrigin(session_id=key["session_id"], input_position=0, loaded=())
        await insert_prompt(tx, SENT, sent, CallOutcome(new_id(), "stop"), agent_id=key["agent_id"], now=entry.made_at)
    return {"item_id": str(rule.item_id), "open_item": str(open_item.item_id), "compaction_id": str(entry.entry_id)}


async def _decide(person: OperationCaller) -> tuple[str, str]:
    """Record three decisions, of which one is reviewed; return the ids of the others."""
    draft = DecisionDraft(
        description="Send the crate by ship",
        confidence=0.8,
        at=person.scope.now(),
        reasons=(DecisionReason("analysis", "It is heavy."),),
        tags=("freight",),
    )
    others = ("Keep the crate dry", "process"), ("Pay for the crate in advance", "cost")
    drafts = [draft, *(replace(draft, description=text, category=category, tags=()) for text, category in others)]
    decided = [await person.decisions.decide(one) for one in drafts]
    decision_id, other_id, reviewed_id = (str(one.decision_id) for one in decided)
    await person.decisions.link(decision_id, "relates", reviewed_id)
    await person.decisions.review(reviewed_id, "partial", lesson="Ask for a crate with a lid.")
    return decision_id, other_id


def to_comparable(value: Any, leave_out: Set[str] = UNCOMPARED_FIELDS) -> Any:
    """The value with a mark for each id, time and origin."""
    match value:
        case str():
            text = _TIME.sub("@", _ID.sub("#", value))
            return _AUTHOR.sub("<author>", _ORIGIN.sub("<door>", text))
        case dict():
            fields = cast("Mapping[str, Any]", value)
            return {name: to_comparable(one, leave_out) for name, one in fields.items() if name not in leave_out}
        case list():
            return [to_comparable(one, leave_out) for one in cast("list[Any]", value)]
        case _:
            return value


def list_changes(before: Rows, after: Rows) -> list[str]:
    """The rows that a call took away and added, in a comparable form."""
    return sorted(
        f"{sign} {table} {json.dumps(to_comparable(json.loads(row)), sort_keys=True)}"
        for table in {*before, *after} - UNCOMPARED
        for sign, rows, others in (("-", before, after), ("+", after, before))
        for row in (rows.get(table, Counter[str]()) - others.get(table, Counter[str]())).elements()
    )
