"""The tools of a chat, by name: their inputs, and what runs each."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, cast, get_args

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from newton.agent import inputs
from newton.agent.field_types import CleanText, Name
from newton.agent.inputs import ToolInput
from newton.agent.inventory.artifacts import ArtifactReadQuery
from newton.agent.loop import tools
from newton.agent.loop.tools import AgentToolset, ToolResult, ToolSpec
from newton.agent.reconciliation.tool_changes import ToolChange, ToolChanger
from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.dialogue.artifact_store import ArtifactVersion
from newton.dialogue.task_tree import Task
from newton.errors import InputError
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.reconciliation.reconciling_types import Operation
from newton.memory.memory import UNTRUSTED_TIERS, Trust, lowest_known_trust

MAX_STEPS = 20


class LookUpInput(ToolInput):
    """Search memory for what the context lacks, or read one item."""

    query: CleanText | None = None
    id: str | None = Field(None, description="#id")
    offset: SkipJsonSchema[int] = Field(0, ge=0)  # results name the next one


class CorrectInput(ToolInput):
    """Replace an item by what the user says, or end it."""

    id: str = Field(description="#id or its words")
    statement: CleanText | None = Field(None, description="none ends it")


class ForgetItemInput(ToolInput):
    """The user wants an item or words not kept."""

    id: str


class RuleInput(ToolInput):
    """The user's lasting rules and wishes: add (text), change (id, text), lift (id)."""

    text: CleanText | None = None
    id: str | None = Field(None, description="or its words")


class ReadPartInput(ToolInput):
    """Read or search a long text of this conversation. No arguments: list them."""

    name: Name | None = None
    lines: str | None = Field(None, max_length=50, description="'120-180' or '-50'")
    search: CleanText | None = Field(None, max_length=1_000, description="2 or 3 words")
    offset: SkipJsonSchema[int] = Field(0, ge=0, le=1_000)


class TaskInput(ToolInput):
    """Keep a plan for work of several steps; finish each with its result."""

    action: Literal["start", "finish", "block", "fail", "resume"]
    text: CleanText | None = Field(None, description="goal, result or reason")
    steps: list[CleanText] = Field([], max_length=MAX_STEPS)
    number: int | None = Field(None, ge=1, le=1_000_000_000)


class DecideInput(ToolInput):
    """Record a decision before acting on it; returns similar ones."""

    description: CleanText
    confidence: float = Field(ge=0, le=1)
    stakes: Stakes = "medium"
    reasons: list[CleanText] = Field([], max_length=50, description="'empirical: it worked'")

    def to_draft(self, now: datetime) -> DecisionDraft:
        """Return the input as the draft of a decision made at `now`."""
        return DecisionDraft(
            description=self.description,
            confidence=self.confidence,
            at=now,
            stakes=self.stakes,
            reasons=tuple(map(_to_reason, self.reasons)),
        )


class OutcomeOfDecisionInput(ToolInput):
    """Record how a decision turned out."""

    decision_id: str
    outcome: Verdict
    lesson: CleanText | None = None


class AnyInput(ToolInput):
    """Any arguments, for a tool that answers the same to all."""

    model_config = ConfigDict(extra="ignore")


def _to_reason(text: str) -> DecisionReason:
    """Return a reason from a text that may begin with its kind."""
    kind, colon, rest = text.partition(":")
    if colon and rest.strip() and kind.strip().lower() in get_args(ReasonKind):
        return DecisionReason(cast("ReasonKind", kind.strip().lower()), rest.strip())
    return DecisionReason("analysis", text)


LEARNT_ANYWAY = ToolResult(
    {"status": "not needed", "hint": "What the user says is remembered without a call. Answer the user now."}
)


async def recall(toolset: AgentToolset, args: LookUpInput) -> ToolResult:
    """Search the memory, or read one memory in full."""
    if args.id:
        wanted = inputs.ExpandInput.model_validate({"memory_id": args.id.lstrip("#"), "offset": args.offset})
        return await tools.expand(toolset, wanted)
    if args.query:
        return await tools.recall(toolset, inputs.RecallInput.model_validate({"query": args.query}))
    raise InputError("The call has neither a query nor an id.", hint="Give one of them.")


async def correct(toolset: AgentToolset, args: CorrectInput) -> ToolResult:
    """Replace an item by what the user says now, or end it."""
    op: Operation = "update" if args.statement else "end"
    return await _change(toolset, ToolChange(op, args.id, args.statement or ""))


async def forget(toolset: AgentToolset, args: ForgetItemInput) -> ToolResult:
    """Hide an item, or messages of the user, as if they had never been said; not deleted, so this can be undone."""
    changer = await _prepare_change(toolset)
    return await _finish_change(toolset, await changer.forget(args.id))


async def change_rule(toolset: AgentToolset, args: RuleInput) -> ToolResult:
    """Add, change or lift a rule or wish of the user."""
    if not (args.text or args.id):
        raise InputError("The call has neither a text nor an id.", hint="Give one of them.")
    stated = detect_instructions(args.text or "")
    op: Operation = "wish" if stated and stated[0].part == "preference" else "rule"
    return await _change(toolset, ToolChange(op, args.id, args.text or ""))


async def _change(toolset: AgentToolset, change: ToolChange) -> ToolResult:
    changer = await _prepare_change(toolset)
    return await _finish_change(toolset, await changer.change(change))


async def _prepare_change(toolset: AgentToolset) -> ToolChanger:
    if toolset.place is None:
        raise InputError("There is no message of the user in a session.", hint="Continue without this tool.")
    await toolset.maintenance.learn_statements(only_recent=True)  # what the message states is known in its own words
    has_read_others = toolset.max_trust in UNTRUSTED_TIERS
    return ToolChanger(scope=toolset.curation.scope, place=toolset.place, has_read_others=has_read_others)


async def _finish_change(toolset: AgentToolset, fields: Mapping[str, object]) -> ToolResult:
    await toolset.maintenance.process_pending()
    return ToolResult({name: value for name, value in fields.items() if value})


async def decide(toolset: AgentToolset, args: DecideInput) -> ToolResult:
    return await tools.record_decision(toolset, args.to_draft(toolset.memories.scope.now()))


async def change_task(toolset: AgentToolset, args: TaskInput) -> ToolResult:
    """Start, finish, block, fail or resume a task of the session."""
    if args.action == "resume":
        if args.number is None:
            raise InputError("The call has no number of a task.", hint="Give `number`.")
        return await _describe_change(toolset, await toolset.tasks.resume(args.number))
    if args.text is None:
        raise InputError("The call has no text.", hint="Give the goal, the result or the reason as `text`.")
    return await _describe_change(toolset, await _change_current(toolset, args, args.text))


async def _change_current(toolset: AgentToolset, args: TaskInput, text: str) -> Task:
    if args.action == "start":
        return await toolset.tasks.push(text, args.steps)
    if args.action == "finish":
        return await toolset.tasks.pop(text)
    if args.action == "block":
        return await toolset.tasks.block(text)
    failed, _ = await toolset.tasks.fail(text)
    return failed


async def _describe_change(toolset: AgentToolset, task: Task) -> ToolResult:
    """Describe a changed task, the task that is current now, and the steps of the plan that remain."""
    tree = await toolset.tasks.tree()
    current = tree.current
    fields: dict[str, object] = {"task": task.number, "status": task.status}
    fields["current_task"] = current and {"number": current.number, "goal": current.goal}
    planned = [{"number": one.number, "goal": one.goal} for one in tree.stack.related if one.status == "planned"]
    return ToolResult(fields | ({"planned_steps": planned} if planned else {}), tree=tree)


async def read_artifact(toolset: AgentToolset, args: ReadPartInput) -> ToolResult:
    """Read lines of an artifact of the session, search in its artifacts, or list them."""
    if toolset.session_id is None:
        raise InputError("There is no session, so there are no artifacts.", hint="Continue without this tool.")
    if args.name is None and args.search is None:
        listed = await toolset.artifacts.list_latest(toolset.session_id)
        return ToolResult({"items": list(map(_describe_version, listed))}, _find_trust(listed))
    page = await toolset.artifacts.read(toolset.session_id, ArtifactReadQuery(**args.model_dump()))
    fields = {
        "artifacts": [_describe_version(one) for one in page.artifacts],
        "text": page.render() or "Nothing found. Search other words, or read `lines`.",
        "next_lines": page.next_lines,
        "next_offset": page.next_offset,
        "missing": page.missing,
    }
    kept = {name: value for name, value in fields.items() if value or name == "artifacts"}
    return ToolResult(kept, _find_trust(page.artifacts))


def _describe_version(artifact: ArtifactVersion) -> dict[str, object]:
    source = {"source": artifact.source} if artifact.source else {}
    return {
        "name": artifact.name,
        "version": artifact.version,
        "kind": artifact.kind,
        "media_type": artifact.media_type,
        "lines": artifact.line_count,
        "bytes": artifact.byte_count,
        "trust": artifact.trust,
        **source,
    }


def _find_trust(artifacts: Iterable[ArtifactVersion]) -> Trust | None:
    """Return the lowest trust among the artifacts from tools or the web; None without such an artifact."""
    return lowest_known_trust(one.trust for one in artifacts if one.trust in UNTRUSTED_TIERS)


async def say_learnt(toolset: AgentToolset, args: ToolInput) -> ToolResult:
    """Answer a call of a former storing tool: tell the model that the statement is learnt anyway."""
    return LEARNT_ANYWAY


# In the order in which they are offered if not all fit into the window.
OFFERED_TOOLS: Mapping[str, ToolSpec] = {
    "recall": ToolSpec(LookUpInput, recall, mutates=False),
    "read_artifact": ToolSpec(ReadPartInput, read_artifact, mutates=False),
    "correct": ToolSpec(CorrectInput, correct),
    "forget": ToolSpec(ForgetItemInput, forget),
    "rule": ToolSpec(RuleInput, change_rule),
    "decide": ToolSpec(DecideInput, decide),
    "review": ToolSpec(OutcomeOfDecisionInput, tools.review),
    "task": ToolSpec(TaskInput, change_task),
}
# Not offered, but answered: models know such tools from elsewhere.
UNOFFERED_TOOLS: Mapping[str, ToolSpec] = {
    "expand": tools.TOOLS["expand"],
    **dict.fromkeys(("remember", "note_lesson"), ToolSpec(AnyInput, say_learnt, mutates=False)),
}
CHAT_TOOLS: Mapping[str, ToolSpec] = {**OFFERED_TOOLS, **UNOFFERED_TOOLS}
