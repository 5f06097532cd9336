"""Tools of the model: each has an input model, a censor check and one service call.

The model proposes content; code sets origin, trust, state and identity. What the model stores has the trust `agent`, or
the lowest trust of the text that it read before, whichever is lower.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import ValidationError

from newton.agent.inputs import (
    DecisionInput,
    ExpandInput,
    LessonInput,
    PopTaskInput,
    PushTaskInput,
    RecallInput,
    RememberInput,
    ReviewInput,
    ToolInput,
)
from newton.agent.loop.action_gate import ActionGate
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionPreview, DecisionService
from newton.agent.services.memories import FactDraft, MemoryService
from newton.agent.services.tasks import TaskService
from newton.errors import CensorError, DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import short_id
from newton.memory.memory import Trust, lowest_known_trust, lowest_trust
from newton.providers.chat import ToolDefinition

MAX_TEXT_CHARS = 20_000  # characters of one string in an input of the model
MAX_RESULT_CHARS = 6_000  # characters of a memory in a result; the rest is cut

F = TypeVar("F", bound="ToolInput")


class ToolResult(NamedTuple):
    """The result of a tool call; `trust` is the lowest trust of the quarantined text in its fields."""

    fields: Mapping[str, object]
    trust: Trust | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolset:
    """The tools of one agent for one origin. `max_trust` is the upper bound of the trust of what they store."""

    memories: MemoryService
    curation: CurationService
    decisions: DecisionService
    tasks: TaskService
    gate: ActionGate
    max_trust: Trust = "agent"

    def with_trust(self, tiers: Iterable[Trust | None]) -> "AgentToolset":
        """Return a copy for a model that has read text of these trust tiers."""
        trust = lowest_trust([self.max_trust, *(tier for tier in tiers if tier)])
        return replace(
            self,
            max_trust=trust,
            memories=replace(self.memories, scope=self.memories.scope.at(self.memories.scope.origin, trust)),
            decisions=replace(self.decisions, scope=self.decisions.scope.at(self.decisions.scope.origin, trust)),
        )

    def for_session(self, session_id: UUID) -> "AgentToolset":
        return replace(self, tasks=self.tasks.for_session(session_id))

    async def execute(self, name: str, arguments: str) -> ToolResult:
        """Run a tool call and return its result or its error. Raises DatabaseError."""
        spec = TOOLS.get(name)
        try:
            if spec is None:
                raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(TOOLS)}.")
            args = parse_input(spec.input_model, arguments)
            warning = await self._check_censors(spec, args)
            result = await spec.handler(self, args)
            return result._replace(fields={**result.fields, "warning": warning}) if warning else result
        except DatabaseError:
            raise
        except NewtonError as error:
            return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)

    async def _check_censors(self, spec: "ToolSpec", args: ToolInput) -> str | None:
        """Return the warning of the censors, if any. Raises CensorError when a censor blocks the call."""
        if not spec.mutates:
            return None
        check = await self.gate.check(args.all_text(), "action")
        if check.blocks:
            raise CensorError(f"A censor forbids it: {check.message}.", hint="Nothing was kept. Do something else.")
        return check.message if check.matches else None


class ToolSpec(NamedTuple):
    """One tool: its input model, its handler, and whether it changes anything."""

    input_model: type[ToolInput]
    handler: Callable[[AgentToolset, Any], Awaitable[ToolResult]]
    mutates: bool = True


def parse_input(model: type[F], arguments: str) -> F:
    """Parse the JSON arguments of a tool call. Raises InputError that names the first invalid field."""
    try:
        parsed = model.model_validate_json(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the arguments"
        raise InputError(f"{field}: {first['msg']}.", hint="Call it again with what its schema says.") from None
    if any(len(text) > MAX_TEXT_CHARS for text in parsed.iter_texts()):
        raise InputError(f"A text is longer than {MAX_TEXT_CHARS} characters.", hint="Shorten it.")
    return parsed


def list_tools(*, exclude: frozenset[str] = frozenset()) -> tuple[ToolDefinition, ...]:
    """Return the definitions of all tools but the excluded ones, as the chat API takes them."""
    return tuple(
        ToolDefinition(name, _function_schema(name, kind.input_model))
        for name, kind in TOOLS.items()
        if name not in exclude
    )


async def remember(toolset: AgentToolset, args: RememberInput) -> ToolResult:
    kept = await toolset.memories.remember(FactDraft(**args.model_dump()))
    return ToolResult({"memory_id": short_id(kept.memory_id), "status": str(kept.status)})


async def recall(toolset: AgentToolset, args: RecallInput) -> ToolResult:
    recalled = await toolset.memories.recall(args.query, limit=args.limit)
    items = [
        {"memory_id": short_id(one.memory_id), "kind": one.kind, "trust": one.trust, "text": one.summary}
        for one in recalled.memories
    ]
    missing = {"missing": dict(recalled.missing)} if recalled.missing else {}
    return ToolResult(
        {"items": items, **missing}, lowest_known_trust(one.trust for one in recalled.memories if one.quarantined)
    )


async def expand(toolset: AgentToolset, args: ExpandInput) -> ToolResult:
    memory, _, fact = await toolset.curation.get(args.memory_id)
    fields = {
        "memory_id": short_id(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "trust": memory.trust,
        "occurred_at": memory.occurred_at.isoformat(),
        "text": memory.full_text[:MAX_RESULT_CHARS],
        "omitted_chars": max(len(memory.full_text) - MAX_RESULT_CHARS, 0),
        **({"fact": fact} if fact else {}),
    }
    await toolset.memories.record_access([memory.memory_id])
    return ToolResult(fields, memory.trust if memory.quarantined else None)


async def decide(toolset: AgentToolset, args: DecisionInput) -> ToolResult:
    decided = await toolset.decisions.decide(args.to_draft(toolset.memories.scope.now()))
    return ToolResult(
        {"decision_id": short_id(decided.decision_id), "is_new": decided.is_new, **_preview_fields(decided.preview)}
    )


async def review(toolset: AgentToolset, args: ReviewInput) -> ToolResult:
    await toolset.decisions.review(args.decision_id, args.outcome, lesson=args.lesson, how="api")
    return ToolResult({"reviewed": args.outcome})


async def push_task(toolset: AgentToolset, args: PushTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.push(args.goal)).number})


async def pop_task(toolset: AgentToolset, args: PopTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.pop(args.result)).number, "status": "complete"})


async def note_lesson(toolset: AgentToolset, args: LessonInput) -> ToolResult:
    kept = await toolset.memories.remember(FactDraft(content=args.lesson, subject=args.subject))
    return ToolResult({"memory_id": short_id(kept.memory_id), "status": str(kept.status)})


TOOLS: Mapping[str, ToolSpec] = {
    "remember": ToolSpec(RememberInput, remember),
    "recall": ToolSpec(RecallInput, recall, mutates=False),
    "expand": ToolSpec(ExpandInput, expand, mutates=False),
    "decide": ToolSpec(DecisionInput, decide),
    "review": ToolSpec(ReviewInput, review),
    "push_task": ToolSpec(PushTaskInput, push_task),
    "pop_task": ToolSpec(PopTaskInput, pop_task),
    "note_lesson": ToolSpec(LessonInput, note_lesson),
}


def _preview_fields(preview: DecisionPreview) -> dict[str, object]:
    """Return the similar decisions, guardrail messages and base rate of a preview."""
    precedents = [
        {"decision_id": short_id(one.memory_id), "outcome": one.outcome, "text": one.summary}
        for one in preview.precedents
    ]
    messages = [result.message for result in preview.guardrail_results if result.message]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": messages} if messages else {}),
        "category_success_rate": preview.track_record.category_success_rate,
    }


def _function_schema(name: str, model: type[ToolInput]) -> dict[str, object]:
    schema = model.model_json_schema()
    described = " ".join((model.__doc__ or "").split())
    parameters = {field: one for field, one in schema.items() if field not in ("title", "description")}
    return {"name": name, "description": described, "parameters": parameters}
