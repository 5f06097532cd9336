"""Tools of the model. Each has an input model and calls one service; a tool that changes data is checked by censors.

The model supplies content; code sets origin, trust tier and state. A memory stored by the model has the trust tier
`agent`, or the lowest tier of any text that the model has read, if that is lower.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import ValidationError

from newton.agent import artifact_inputs, context_inputs, decision_inputs, inputs
from newton.agent.artifact_views import describe_page, describe_version, find_lowest_trust
from newton.agent.inputs import ToolInput
from newton.agent.inventory.artifacts import ArtifactReadQuery, ArtifactService
from newton.agent.loop.action_gate import ActionGate
from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionPreview, DecisionService
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import FactDraft, MemoryService, RememberResult
from newton.agent.session_data.session_use import SessionUseRecorder
from newton.agent.session_data.tasks import TaskService
from newton.cognition.content_words import extract_content_words
from newton.content.validation_messages import describe_problem, select_problem, suggest_field
from newton.content.yaml_models import did_you_mean
from newton.dialogue.extraction_queue import list_stated_facts
from newton.dialogue.task_tree import Task, TaskTree
from newton.errors import DatabaseError, InputError, NewtonError, NotFoundError
from newton.heart.identity.standing_instructions import detect_instructions
from newton.heart.statements.statement_selection import SPEAKER
from newton.memory.lookup import MemoryMention, cut_page, short_id
from newton.memory.memory import PERSON_TIERS, Trust, lowest_known_trust, lowest_trust
from newton.providers.chat import ToolDefinition

MAX_TEXT_CHARS = 20_000  # characters of one string in an input of the model

EXPAND_TOOL = "expand"
QUARANTINE_HINT = "it is not used before a person or other sources confirm it."

F = TypeVar("F", bound="ToolInput")


class ToolResult(NamedTuple):
    """The result of a tool call.

    `trust` is the lowest trust tier of quarantined text in its fields; None if there is none. `tree` are the tasks of
    the session if the call has changed them.
    """

    fields: Mapping[str, object]
    trust: Trust | None = None
    is_error: bool = False
    tree: TaskTree | None = None


class SaidMessage(NamedTuple):
    """A message of the user, and the id of its memory; None if it has none."""

    text: str
    memory_id: UUID | None

    def states(self, content: str) -> bool:
        """Return whether a text only restates the message: whether the message has all its content words."""
        words = extract_content_words(content) - {SPEAKER}
        return bool(words) and words <= extract_content_words(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolset:
    """The tools of one agent. Memories that they store get at most the trust tier `max_trust`.

    What they store, find and read is added to the working memory of the session of `session_use`. `said` is the message
    that the turn answers.
    """

    memories: MemoryService
    curation: CurationService
    decisions: DecisionService
    tasks: TaskService
    gate: ActionGate
    maintenance: MaintenanceService
    session_use: SessionUseRecorder
    artifacts: ArtifactService
    session_id: UUID | None = None
    max_trust: Trust = "agent"
    said: SaidMessage | None = None

    def with_trust(self, tiers: Iterable[Trust | None]) -> "AgentToolset":
        """Return a copy for a model that has read text of these trust tiers; what it stores gets the lowest of them."""
        trust = lowest_trust([self.max_trust, *(tier for tier in tiers if tier)])
        memories = replace(self.memories, scope=replace(self.memories.scope, trust=trust))
        decisions = replace(self.decisions, scope=replace(self.decisions.scope, trust=trust))
        return replace(self, max_trust=trust, memories=memories, decisions=decisions)

    def for_session(self, session_id: UUID, said: SaidMessage | None = None) -> "AgentToolset":
        return replace(
            self,
            said=said,
            tasks=self.tasks.for_session(session_id),
            session_use=self.session_use.for_session(session_id),
            session_id=session_id,
        )

    async def execute(self, name: str, arguments: str) -> ToolResult:
        """Run a tool call with JSON arguments; return its result, or an error as the result. Raises DatabaseError
        only.
        """
        spec = TOOLS.get(name)
        try:
            if spec is None:
                hint = f"{did_you_mean(name, TOOLS)} The tools are: {', '.join(TOOLS)}.".strip()
                raise NotFoundError(f"There is no tool {name!r}.", hint=hint)
            args = parse_input(spec.input_model, arguments)
            warning = await self._check_censors(spec, args)
            result = await spec.handler(self, args)
            return result._replace(fields={**result.fields, "warning": warning}) if warning else result
        except DatabaseError:
            raise
        except NewtonError as error:
            return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)

    async def _check_censors(self, spec: "ToolSpec", args: ToolInput) -> str | None:
        """Return the warning of a matching censor; None without one, or if the tool changes nothing.

        Raises CensorError if a censor blocks the arguments.
        """
        if not spec.mutates:
            return None
        return await self.gate.check_write(args.all_text(), trust=self.max_trust)


class ToolSpec(NamedTuple):
    """A tool: its input model, its handler, and whether it `mutates`, that is, changes stored data."""

    input_model: type[ToolInput]
    handler: Callable[[AgentToolset, Any], Awaitable[ToolResult]]
    mutates: bool = True


def parse_input(model: type[F], arguments: str, *, hint: str = "Call the tool again and follow its schema.") -> F:
    """Parse the JSON arguments of a tool call. Raises InputError with `hint`, which names one invalid field."""
    try:
        parsed = model.model_validate_json(arguments)
    except ValidationError as error:
        problem = select_problem(error.errors())
        field = ".".join(map(str, problem["loc"])) or "the arguments"
        what = f"{field}: {describe_problem(problem)}."
        raise InputError(what, hint=f"{suggest_field(problem, model)} {hint}".strip()) from None
    if any(len(text) > MAX_TEXT_CHARS for text in parsed.iter_texts()):
        raise InputError(f"A text is longer than {MAX_TEXT_CHARS:,} characters.", hint="Shorten the text.")
    return parsed


@lru_cache(maxsize=64)  # of the sets of names that callers' own tools have
def list_tools(*, exclude: frozenset[str] = frozenset()) -> tuple[ToolDefinition, ...]:
    """Return the definitions of all tools except the excluded names, in the format of the chat API."""
    specs = [(name, spec) for name, spec in TOOLS.items() if name not in exclude]
    return tuple(ToolDefinition(name, _function_schema(name, spec.input_model)) for name, spec in specs)


async def remember(toolset: AgentToolset, args: inputs.RememberInput) -> ToolResult:
    """Store a fact. A standing instruction is proposed for the identity instead, and applies once a person accepts
    it.
    """
    own = toolset if args.source == "own" else toolset.with_trust([args.source])
    instructions = [] if own.max_trust in PERSON_TIERS else detect_instructions(args.content)
    if not instructions:
        return await _store_fact(own, FactDraft(**args.model_dump(exclude={"source"})))
    identity = IdentityService(scope=own.memories.scope)
    for instruction in instructions:
        await identity.propose(instruction.part, instruction.text, trust=own.max_trust)
    hint = "This is an instruction, not a fact. It applies after a person accepts it (`newton identity proposals`)."
    return ToolResult({"status": "proposed", "hint": hint})


async def recall(toolset: AgentToolset, args: inputs.RecallInput) -> ToolResult:
    memories = toolset.memories.with_min_relevance(args.min_relevance)
    recalled = await memories.recall(args.query, kinds=args.kinds, limit=args.limit, session_id=toolset.session_id)
    items = [
        {"memory_id": short_id(found.memory_id), "kind": found.kind, "trust": found.trust, "text": found.summary}
        | ({"probability": recalled.find_probability(found.memory_id)} if recalled.probabilities else {})
        for found in recalled.memories
    ]
    await toolset.session_use.record([found.memory_id for found in recalled.memories])
    missing: dict[str, object] = {"missing": dict(recalled.missing)} if recalled.missing else {}
    missing |= {"note": note} if (note := memories.describe_nothing(recalled)) else {}
    trust = lowest_known_trust(found.trust for found in recalled.memories if found.quarantined)
    return ToolResult({"items": items, **missing}, trust)


async def expand(toolset: AgentToolset, args: inputs.ExpandInput) -> ToolResult:
    memory, _, fact = await toolset.curation.get(args.memory_id)
    page = cut_page(memory.full_text, offset=args.offset, limit=args.limit)
    fields = {
        "memory_id": short_id(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "trust": memory.trust,
        "occurred_at": memory.occurred_at.isoformat(),
        "remaining_chars": page.remaining_chars,
        **({"next_offset": page.offset + len(page.text)} if page.remaining_chars else {}),
        **({"fact": fact} if fact else {}),
        "text": page.text,
    }
    await toolset.memories.record_reading([memory.memory_id])
    await toolset.session_use.record([memory.memory_id])
    return ToolResult(fields, memory.trust if memory.quarantined else None)


async def retract(toolset: AgentToolset, args: inputs.RetractOwnFactInput) -> ToolResult:
    await toolset.curation.retract_own(args.memory_id)
    return ToolResult({"memory_id": args.memory_id, "state": "INACTIVE"})


async def decide(toolset: AgentToolset, args: decision_inputs.DecisionInput) -> ToolResult:
    result = await toolset.decisions.decide(args.to_draft(toolset.memories.scope.now()))
    await toolset.session_use.record([result.decision_id])
    fields = {"decision_id": short_id(result.decision_id), "is_new": result.is_new, **preview_fields(result.preview)}
    return ToolResult(fields)


async def review(toolset: AgentToolset, args: decision_inputs.ReviewInput) -> ToolResult:
    await toolset.decisions.review(args.decision_id, args.outcome, lesson=args.lesson, how="api")
    return ToolResult({"reviewed": args.outcome})


async def push_task(toolset: AgentToolset, args: context_inputs.PushTaskInput) -> ToolResult:
    return await _describe_change(toolset, await toolset.tasks.push(args.goal, args.steps))


async def pop_task(toolset: AgentToolset, args: context_inputs.PopTaskInput) -> ToolResult:
    return await _describe_change(toolset, await toolset.tasks.pop(args.result))


async def block_task(toolset: AgentToolset, args: context_inputs.BlockCurrentTaskInput) -> ToolResult:
    return await _describe_change(toolset, await toolset.tasks.block(args.reason))


async def fail_task(toolset: AgentToolset, args: context_inputs.FailCurrentTaskInput) -> ToolResult:
    failed, _ = await toolset.tasks.fail(args.reason, instead=args.replacement_goal)
    return await _describe_change(toolset, failed)


async def resume_task(toolset: AgentToolset, args: context_inputs.ResumeBlockedTaskInput) -> ToolResult:
    return await _describe_change(toolset, await toolset.tasks.resume(str(args.number)))


async def _describe_change(toolset: AgentToolset, task: Task) -> ToolResult:
    """Describe a changed task, the task that is current now, and the steps of the plan that remain."""
    tree = await toolset.tasks.tree()
    current = tree.current
    fields: dict[str, object] = {"task": task.number, "status": task.status}
    fields["current_task"] = current and {"number": current.number, "goal": current.goal}
    planned = [{"number": one.number, "goal": one.goal} for one in tree.stack.related if one.status == "planned"]
    return ToolResult(fields | ({"planned_steps": planned} if planned else {}), tree=tree)


async def note_lesson(toolset: AgentToolset, args: inputs.LessonInput) -> ToolResult:
    return await _store_fact(toolset, FactDraft(content=args.lesson, subject=args.subject))


async def read_artifact(toolset: AgentToolset, args: artifact_inputs.ReadArtifactInput) -> ToolResult:
    """Read lines of an artifact of the session, search in its artifacts, or list them."""
    if toolset.session_id is None:
        raise InputError("There is no session, so there are no artifacts.", hint="Continue without this tool.")
    if args.name is None and args.search is None:
        listed = await toolset.artifacts.list_latest(toolset.session_id)
        return ToolResult({"items": list(map(describe_version, listed))}, find_lowest_trust(listed))
    query = ArtifactReadQuery(**args.model_dump(include=set(artifact_inputs.ReadArtifactInput.model_fields)))
    page = await toolset.artifacts.read(toolset.session_id, query)
    return ToolResult(describe_page(page), find_lowest_trust([one.artifact for one in page.passages]))


async def _store_fact(toolset: AgentToolset, fact: FactDraft) -> ToolResult:
    stored = await _remember(toolset, fact)
    await toolset.maintenance.process_pending()
    await toolset.session_use.record([stored.memory_id])
    effects = await toolset.curation.find_effects(stored.memory_id)
    fields = {
        "memory_id": short_id(stored.memory_id),
        "status": str(stored.status),
        "replaced": list(map(_describe_mention, effects.replaced)),
        "contested": list(map(_describe_mention, effects.contested)),
        "redacted": stored.redacted,
    }
    kept = "is" if stored.status == "new" else "is still"
    held = {"hint": f"The memory {kept} in quarantine: {QUARANTINE_HINT}"} if effects.quarantined else {}
    return ToolResult({**{name: value for name, value in fields.items() if value}, **held})


async def _remember(toolset: AgentToolset, fact: FactDraft) -> RememberResult:
    """Store a fact. One that only restates the message of the turn is the fact that this message states, if any."""
    message_id = toolset.said.memory_id if toolset.said and toolset.said.states(fact.content) else None
    if message_id is None:
        return await toolset.memories.remember(fact)
    await toolset.maintenance.learn_statements(only_recent=True)
    async with toolset.memories.scope.transaction() as tx:
        stated = await list_stated_facts(tx, [message_id], agent_id=toolset.memories.scope.agent_id)
    for memory_id in stated:
        known, _, _ = await toolset.curation.get(str(memory_id))
        if SaidMessage(known.full_text, memory_id).states(fact.content):
            return RememberResult("unchanged", memory_id, {})
    return await toolset.memories.remember(replace(fact, message_id=message_id))


def _describe_mention(mention: MemoryMention) -> dict[str, str]:
    return {"memory_id": short_id(mention.memory_id), "text": mention.text}


TOOLS: Mapping[str, ToolSpec] = {
    "remember": ToolSpec(inputs.RememberInput, remember),
    "recall": ToolSpec(inputs.RecallInput, recall, mutates=False),
    EXPAND_TOOL: ToolSpec(inputs.ExpandInput, expand, mutates=False),
    "retract": ToolSpec(inputs.RetractOwnFactInput, retract),
    "decide": ToolSpec(decision_inputs.DecisionInput, decide),
    "review": ToolSpec(decision_inputs.ReviewInput, review),
    "push_task": ToolSpec(context_inputs.PushTaskInput, push_task),
    "pop_task": ToolSpec(context_inputs.PopTaskInput, pop_task),
    "block_task": ToolSpec(context_inputs.BlockCurrentTaskInput, block_task),
    "fail_task": ToolSpec(context_inputs.FailCurrentTaskInput, fail_task),
    "resume_task": ToolSpec(context_inputs.ResumeBlockedTaskInput, resume_task),
    "note_lesson": ToolSpec(inputs.LessonInput, note_lesson),
    "read_artifact": ToolSpec(artifact_inputs.ReadArtifactInput, read_artifact, mutates=False),
}


# Offered only if they fit into the window beside the others.
OPTIONAL_TOOLS = frozenset({"retract", "block_task", "fail_task", "resume_task", "note_lesson"})
LARGE_WINDOW_TOOLS = frozenset(TOOLS) - {"recall", "read_artifact"}  # a window below about 16,000 tokens has no others


def preview_fields(preview: DecisionPreview) -> dict[str, object]:
    """Return the similar decisions, guardrail messages and success rate of a decision's preview as JSON fields."""
    precedents = [
        {"decision_id": short_id(found.memory_id), "outcome": found.outcome, "text": found.summary}
        for found in preview.precedents
    ]
    messages = [result.message for result in preview.guardrail_results if result.message]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": messages} if messages else {}),
        "category_success_rate": preview.track_record.category_success_rate,
    }


@cache
def _function_schema(name: str, model: type[ToolInput]) -> dict[str, object]:
    schema = model.model_json_schema()
    description = " ".join((model.__doc__ or "").split())
    parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {"name": name, "description": description, "parameters": parameters}
