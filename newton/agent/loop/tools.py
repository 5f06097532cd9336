"""Execution of the tools that models call, and the tools that MCP clients share with the agent's own model.

Each has an input model and calls one service; a tool that changes data is checked by censors. The model supplies
content; code sets origin, trust tier and state. A memory stored by the model has the trust tier `agent`, or the lowest
tier of any text that the model has read, if that is lower.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from newton.agent import decision_inputs, inputs
from newton.agent.inputs import ToolInput, parse_json
from newton.agent.inventory.artifacts import ArtifactService
from newton.agent.loop.action_gate import ActionGate
from newton.agent.maintenance.service import MaintenanceService
from newton.agent.reconciliation.line_changes import LearningReceipt, read_receipt
from newton.agent.reconciliation.rulings import ProposedChange, rule_on
from newton.agent.reconciliation.tool_changes import MessagePlace
from newton.agent.services.curation import CurationService, MemoryRecord
from newton.agent.services.decisions import DecisionService
from newton.agent.services.memories import MemoryService
from newton.agent.services.working_memory import SessionUseRecorder
from newton.agent.session_data.tasks import TaskService
from newton.brain.drafts import DecisionDraft, RecordedDecision
from newton.cognition.assembly.fact_labels import render_found
from newton.content.yaml_files import did_you_mean
from newton.dialogue.task_tree import TaskTree
from newton.errors import DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import cut_page, short_id
from newton.memory.memory import Trust, lowest_known_trust, lowest_trust
from newton.memory.search_types import RetrievedMemory
from newton.memory.source_marks import find_foreign

NOTED_HINT = "It is shown with the decision, which is the user's: their own review counts."
MAX_TEXT_CHARS = 20_000  # characters of one string in an input of the model

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolset:
    """The tools that a model calls on the memory of one agent. What they store gets at most the trust `max_trust`.

    What they store, find and read is added to the working memory of the session of `session_use`. `place` is that of
    the message that the turn answers.
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
    place: MessagePlace | None = None

    def with_trust(self, tiers: Iterable[Trust | None]) -> "AgentToolset":
        """Return a copy for a model that has read text of these trust tiers: what it stores gets the lowest of them."""
        trust = lowest_trust([self.max_trust, *(tier for tier in tiers if tier)])
        memories = replace(self.memories, scope=replace(self.memories.scope, trust=trust))
        decisions = replace(self.decisions, scope=replace(self.decisions.scope, trust=trust))
        tasks = replace(self.tasks, scope=replace(self.tasks.scope, trust=trust))
        return replace(self, max_trust=trust, memories=memories, decisions=decisions, tasks=tasks)

    def for_session(self, session_id: UUID, position: int | None = None) -> "AgentToolset":
        """Return a copy for the turn of a session that answers the message at `position`."""
        return replace(
            self,
            place=None if position is None else MessagePlace(session_id, position),
            tasks=self.tasks.for_session(session_id),
            session_use=self.session_use.for_session(session_id),
            session_id=session_id,
        )

    async def write_receipt(self, line_id: UUID) -> LearningReceipt:
        """Store the facts of the latest messages; return the changes made by the message with memory `line_id`."""
        await self.maintenance.learn_statements(only_recent=True)
        async with self.curation.scope.transaction() as tx:
            return await read_receipt(tx, line_id, agent_id=self.curation.scope.agent_id)

    async def execute(self, name: str, arguments: str, *, tools: "Mapping[str, ToolSpec] | None" = None) -> ToolResult:
        """Run a tool call with JSON arguments; return its result, which is an error if it fails.

        Only DatabaseError is raised. `tools` are those that the caller has; None means the shared ones.
        """
        known = TOOLS if tools is None else tools
        spec = known.get(name)
        try:
            if spec is None:
                hint = f"{did_you_mean(name, known)} The tools are: {', '.join(known)}.".strip()
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
        return await self.gate.check_write(args.all_text())


class ToolSpec(NamedTuple):
    """A tool: its input model, its handler, and whether it `mutates`, that is, changes stored data."""

    input_model: type[ToolInput]
    handler: Callable[[AgentToolset, Any], Awaitable[ToolResult]]
    mutates: bool = True


def parse_input(model: type[F], arguments: str, *, hint: str = "Call the tool again and follow its schema.") -> F:
    """Parse the JSON arguments of a tool call. Raises InputError, which names an invalid field or a too long text."""
    parsed = parse_json(model, arguments, hint=hint)
    if any(len(text) > MAX_TEXT_CHARS for text in parsed.iter_texts()):
        raise InputError(f"A text is longer than {MAX_TEXT_CHARS:,} characters.", hint="Shorten the text.")
    return parsed


async def recall(toolset: AgentToolset, args: inputs.RecallInput) -> ToolResult:
    """Search the memory; return the found memories with short ids and short texts."""
    memories = toolset.memories.with_min_relevance(args.min_relevance)
    recalled = await memories.recall(args.query, kinds=args.kinds, limit=args.limit, session_id=toolset.session_id)
    now = memories.scope.now()
    items = [
        {
            "memory_id": short_id(found.memory_id),
            "kind": found.kind,
            "trust": found.trust,
            "text": render_found(found, found.summary, now),
        }
        | ({"probability": recalled.find_probability(found.memory_id)} if recalled.probabilities else {})
        for found in recalled.memories
    ]
    await toolset.session_use.record([found.memory_id for found in recalled.memories])
    missing: dict[str, object] = {"missing": dict(recalled.missing)} if recalled.missing else {}
    missing |= {"note": note} if (note := memories.describe_nothing(recalled)) else {}
    trust = lowest_known_trust(map(_find_foreign, recalled.memories))
    return ToolResult({"items": items, **missing}, trust)


async def expand(toolset: AgentToolset, args: inputs.ExpandInput) -> ToolResult:
    """Return a page of the full text of a memory, with its kind, state, trust and date."""
    memory = await toolset.curation.get(args.memory_id)
    page = cut_page(memory.full_text, offset=args.offset, limit=args.limit)
    fields = {
        "memory_id": short_id(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "trust": memory.trust,
        "occurred_at": memory.occurred_at.isoformat(),
        "remaining_chars": page.remaining_chars,
        **({"next_offset": page.offset + len(page.text)} if page.remaining_chars else {}),
        **({"fact": memory.fact} if memory.fact else {}),
        "text": page.text,
    }
    await toolset.memories.record_reading([memory.memory_id])
    await toolset.session_use.record([memory.memory_id])
    return ToolResult(fields, _find_foreign(memory))


def _find_foreign(memory: RetrievedMemory | MemoryRecord) -> Trust | None:
    return find_foreign(memory.trust, kind=memory.kind, quarantined=memory.quarantined)


async def decide(toolset: AgentToolset, args: decision_inputs.DecisionInput) -> ToolResult:
    """Record a decision; return its id and what its checks found."""
    return await record_decision(toolset, args.to_draft(toolset.memories.scope.now()))


async def record_decision(toolset: AgentToolset, draft: DecisionDraft) -> ToolResult:
    """Record a draft of a decision; return its short id, whether it is new, and what its checks found."""
    result = await toolset.decisions.decide(draft)
    await toolset.session_use.record([result.decision_id])
    fields = {"decision_id": short_id(result.decision_id), "is_new": result.is_new, **_list_checks(result)}
    return ToolResult(fields)


async def review(toolset: AgentToolset, args: decision_inputs.ReviewInput) -> ToolResult:
    """Record the outcome of a decision; of a person's decision, only show it."""
    change = ProposedChange("report", "model", targets=[args.decision_id])
    counts = (await rule_on(toolset.decisions.scope, change)).verdict == "allowed"
    await toolset.decisions.review(args.decision_id, args.outcome, lesson=args.lesson, how="api", counts=counts)
    return ToolResult({"reviewed" if counts else "noted": args.outcome} | ({} if counts else {"hint": NOTED_HINT}))


TOOLS: Mapping[str, ToolSpec] = {
    "recall": ToolSpec(inputs.RecallInput, recall, mutates=False),
    "expand": ToolSpec(inputs.ExpandInput, expand, mutates=False),
    "decide": ToolSpec(decision_inputs.DecisionInput, decide),
    "review": ToolSpec(decision_inputs.ReviewInput, review),
}


def _list_checks(decision: RecordedDecision) -> dict[str, object]:
    """Return the similar decisions, guardrail messages and success rate of a recorded decision as JSON fields."""
    precedents = [
        {"decision_id": short_id(found.decision_id), "outcome": found.outcome, "text": found.text}
        for found in decision.precedents
    ]
    messages = [result.message for result in decision.guardrails if result.message]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": messages} if messages else {}),
        "category_success_rate": decision.base_rate.success_rate,
    }
