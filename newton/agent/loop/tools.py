"""Tools for the model: each has an input schema, a censor check and a handler.

The model supplies content; code sets origin, trust, state and identity. Memories written by a model get the trust
`agent`, or the lowest trust of anything that the model has read, whichever is lower.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from newton.agent.loop.action_gate import ActionGate
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionPreview, DecisionService
from newton.agent.services.memories import FactDraft, MemoryService
from newton.agent.services.tasks import TaskService
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.errors import CensorError, DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import short_id
from newton.memory.memory import Trust, lowest_known_trust, lowest_trust
from newton.providers.chat import ToolDefinition

MAX_TEXT_CHARS = 20_000  # of an argument
MAX_RESULT_CHARS = 6_000  # of a result

F = TypeVar("F", bound="ToolInput")


class ToolInput(BaseModel):
    """The arguments of a tool call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def all_text(self) -> str:
        """Return all texts in the arguments, for the censor check."""
        return "\n".join(_iter_texts(self.model_dump(mode="json")))


class RememberInput(ToolInput):
    """Store a fact permanently: something you learned about a person, a thing or the work. Write one full sentence that
    is understandable on its own. Do not store what the context already contains, and never store secrets."""

    content: str = Field(max_length=MAX_TEXT_CHARS, description="One statement, e.g. 'Ana reviews every migration.'")
    subject: str | None = Field(None, description="The person or thing the fact is about, e.g. 'Ana'.")
    attribute: str | None = Field(None, description="The attribute of the subject, e.g. 'home' or 'role'.")
    confidence: float | None = Field(None, ge=0, le=1, description="How certain the fact is, from 0 to 1.")


class RecallInput(ToolInput):
    """Search the memory: conversations, facts, episodes, procedures, documents and decisions. Use it for information
    that the context lacks. Each result has an id for `expand`."""

    query: str = Field(max_length=MAX_TEXT_CHARS, description="The question, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="The maximum number of results.")


class ExpandInput(ToolInput):
    """Read the full text of one memory, with its source and trust."""

    memory_id: str = Field(description="The id from a result, or its last characters.")


class ReasonInput(ToolInput):
    kind: ReasonKind = "analysis"
    text: str = Field(max_length=MAX_TEXT_CHARS)


class DecideInput(ToolInput):
    """Record a decision before you act on it. Guardrails and censors may reject it; then change the decision or choose
    another. The result lists similar past decisions with their outcomes."""

    description: str = Field(max_length=MAX_TEXT_CHARS, description="The decision in one sentence.")
    confidence: float = Field(ge=0, le=1, description="Your probability that it succeeds, from 0 to 1.")
    stakes: Stakes = Field("medium", description="How much depends on it.")
    category: str = Field("process", max_length=200, description="The kind of decision, e.g. 'architecture'.")
    reasons: tuple[ReasonInput, ...] = Field(
        (), max_length=50, description="The reasons; several different kinds are better."
    )
    alternatives: tuple[str, ...] = Field((), max_length=50, description="The alternatives that were considered.")
    expected: str | None = Field(None, max_length=MAX_TEXT_CHARS, description="The expected result.")
    context: str | None = Field(
        None, max_length=MAX_TEXT_CHARS, description="The situation that requires the decision."
    )


class ReviewInput(ToolInput):
    """Record the outcome of a decision once it is known. It can be recorded only once."""

    decision_id: str = Field(description="The id of the decision, or its last characters.")
    outcome: Verdict
    lesson: str | None = Field(None, max_length=MAX_TEXT_CHARS, description="The lesson learned.")


class PushTaskInput(ToolInput):
    """Start a subtask of the current task. The goal stays in the context."""

    goal: str = Field(max_length=MAX_TEXT_CHARS)


class PopTaskInput(ToolInput):
    """Finish the current task and record its result. Its messages are replaced by a one-line summary."""

    result: str = Field(max_length=MAX_TEXT_CHARS)


class LessonInput(ToolInput):
    """Store a lesson for next time: what to do or to avoid, and when."""

    lesson: str = Field(max_length=MAX_TEXT_CHARS, description="One sentence that is understandable on its own.")
    about: str = Field("lessons", description="The topic, e.g. 'deployments'.")


class ToolResult(NamedTuple):
    """The result of a tool call. `trust` is the lowest trust of external text in `fields`."""

    fields: Mapping[str, object]
    trust: Trust | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolset:
    """The tools of one agent for one interface. What they store gets at most `max_trust`."""

    memories: MemoryService
    curation: CurationService
    decisions: DecisionService
    tasks: TaskService
    gate: ActionGate
    max_trust: Trust = "agent"

    def with_trust(self, tiers: Iterable[Trust | None]) -> "AgentToolset":
        """Return the toolset with its trust lowered to the lowest of `tiers`."""
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
        """Run a tool and return its result. Errors become results, except DatabaseError, which is raised."""
        spec = TOOLS.get(name)
        try:
            if spec is None:
                raise NotFoundError(f"There is no tool {name!r}.", hint=f"Available tools: {', '.join(TOOLS)}.")
            args = parse_input(spec.input_model, arguments)
            warning = await self._check_censors(spec, args)
            result = await spec.handler(self, args)
            return result._replace(fields={**result.fields, "warning": warning}) if warning else result
        except DatabaseError:
            raise
        except NewtonError as error:
            return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)

    async def _check_censors(self, spec: "ToolSpec", args: ToolInput) -> str | None:
        """Return the warning of a matching censor. Raises CensorError when a censor blocks the call."""
        if not spec.mutates:
            return None
        check = await self.gate.check(args.all_text(), "action")
        if check.blocks:
            raise CensorError(f"A censor forbids it: {check.message}.", hint="Nothing was stored. Try another way.")
        return check.message if check.matches else None


class ToolSpec(NamedTuple):
    """A tool: its input schema, its handler, and whether it changes anything."""

    input_model: type[ToolInput]
    handler: Callable[[AgentToolset, Any], Awaitable[ToolResult]]
    mutates: bool = True


def parse_input(model: type[F], arguments: str) -> F:
    """Parse the JSON arguments of a call. Raises InputError."""
    try:
        return model.model_validate_json(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the arguments"
        raise InputError(
            f"{place}: {first['msg']}.", hint="Call the tool again with arguments that match its schema."
        ) from None


def list_tools(*, exclude: frozenset[str] = frozenset()) -> tuple[ToolDefinition, ...]:
    """Return the definitions of all tools except `exclude`."""
    return tuple(
        ToolDefinition(name, _function_schema(name, spec.input_model))
        for name, spec in TOOLS.items()
        if name not in exclude
    )


async def remember(toolset: AgentToolset, args: RememberInput) -> ToolResult:
    result = await toolset.memories.remember(FactDraft(**args.model_dump()))
    return ToolResult({"memory_id": short_id(result.memory_id), "learnt": str(result.status)})


async def recall(toolset: AgentToolset, args: RecallInput) -> ToolResult:
    recalled = await toolset.memories.recall(args.query, limit=args.limit)
    found = [
        {"memory_id": short_id(one.memory_id), "kind": one.kind, "trust": one.trust, "text": one.summary}
        for one in recalled.memories
    ]
    missing = {"missing": dict(recalled.missing)} if recalled.missing else {}
    return ToolResult(
        {"found": found, **missing}, lowest_known_trust(one.trust for one in recalled.memories if one.quarantined)
    )


async def expand(toolset: AgentToolset, args: ExpandInput) -> ToolResult:
    memory, _, attributes = await toolset.curation.get(args.memory_id)
    fields = {
        "memory_id": short_id(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "trust": memory.trust,
        "at": memory.occurred_at.isoformat(),
        "text": memory.full_text[:MAX_RESULT_CHARS],
        "left_out": max(len(memory.full_text) - MAX_RESULT_CHARS, 0),
        **({"about": attributes} if attributes else {}),
    }
    await toolset.memories.record_access([memory.memory_id])
    return ToolResult(fields, memory.trust if memory.quarantined else None)


async def decide(toolset: AgentToolset, args: DecideInput) -> ToolResult:
    draft = DecisionDraft(
        description=args.description,
        confidence=args.confidence,
        at=toolset.memories.scope.now(),
        context=args.context,
        alternatives=args.alternatives,
        reasons=tuple(DecisionReason(reason.kind, reason.text) for reason in args.reasons),
        category=args.category,
        stakes=args.stakes,
        expected=args.expected,
    )
    result = await toolset.decisions.decide(draft)
    return ToolResult(
        {"decision_id": short_id(result.decision_id), "new": result.is_new, **_preview_fields(result.preview)}
    )


async def review(toolset: AgentToolset, args: ReviewInput) -> ToolResult:
    await toolset.decisions.review(args.decision_id, args.outcome, lesson=args.lesson, how="api")
    return ToolResult({"reviewed": args.outcome})


async def push_task(toolset: AgentToolset, args: PushTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.push(args.goal)).number})


async def pop_task(toolset: AgentToolset, args: PopTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.pop(args.result)).number, "status": "complete"})


async def note_lesson(toolset: AgentToolset, args: LessonInput) -> ToolResult:
    result = await toolset.memories.remember(FactDraft(content=args.lesson, subject=args.about))
    return ToolResult({"memory_id": short_id(result.memory_id), "learnt": str(result.status)})


TOOLS: Mapping[str, ToolSpec] = {
    "remember": ToolSpec(RememberInput, remember),
    "recall": ToolSpec(RecallInput, recall, mutates=False),
    "expand": ToolSpec(ExpandInput, expand, mutates=False),
    "decide": ToolSpec(DecideInput, decide),
    "review": ToolSpec(ReviewInput, review),
    "push_task": ToolSpec(PushTaskInput, push_task),
    "pop_task": ToolSpec(PopTaskInput, pop_task),
    "note_lesson": ToolSpec(LessonInput, note_lesson),
}


def _preview_fields(preview: DecisionPreview) -> dict[str, object]:
    """Return the warnings and precedents to report to the model."""
    precedents = [
        {"decision_id": short_id(one.memory_id), "outcome": one.outcome, "text": one.summary}
        for one in preview.precedents
    ]
    warnings = [result.message for result in preview.guardrail_results if result.message]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": warnings} if warnings else {}),
        "success_rate_of_category": preview.track_record.category_success_rate,
    }


def _function_schema(name: str, model: type[ToolInput]) -> dict[str, object]:
    schema = model.model_json_schema()
    described = " ".join((model.__doc__ or "").split())
    parameters = {field: one for field, one in schema.items() if field not in ("title", "description")}
    return {"name": name, "description": described, "parameters": parameters}


def _iter_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list() | tuple():
            for one in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]  # JSON
                yield from _iter_texts(one)  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case _:
            return
