"""What a model may do with the memory while it works: each tool is a form, a check in code, and one call.

A model proposes content. Origin, trust, state and identity are set by code: what it has kept is believed no more than
an agent, and no more than the least of what it had read.
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

MAX_TEXT_CHARS = 20_000  # characters of a text that a model gives
MAX_RESULT_CHARS = 6_000  # characters of what it is told

F = TypeVar("F", bound="ToolInput")


class ToolInput(BaseModel):
    """What a model fills in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def all_text(self) -> str:
        """All the text in it: what censors are asked about."""
        return "\n".join(_iter_texts(self.model_dump(mode="json")))


class RememberInput(ToolInput):
    """Keep a fact for good: what you learnt about a person, a thing or the work, one statement in a full sentence that
    can be read alone. Not what is in the context already, and never secrets."""

    content: str = Field(max_length=MAX_TEXT_CHARS, description="One statement, e.g. 'Ana reviews every migration.'")
    subject: str | None = Field(None, description="Whom or what it is about, e.g. 'Ana'.")
    attribute: str | None = Field(None, description="What it tells of the subject, e.g. 'home' or 'role'.")
    confidence: float | None = Field(None, ge=0, le=1, description="How sure it is, from 0 to 1.")


class RecallInput(ToolInput):
    """Search the memory: conversations, facts, episodes, procedures, documents, decisions. Ask for what is missing in
    the context; each result has an id for `expand`."""

    query: str = Field(max_length=MAX_TEXT_CHARS, description="What you want to know, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="How many at most.")


class ExpandInput(ToolInput):
    """Read one memory in full, with where it comes from and how far it can be believed."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")


class ReasonInput(ToolInput):
    kind: ReasonKind = "analysis"
    text: str = Field(max_length=MAX_TEXT_CHARS)


class DecideInput(ToolInput):
    """Record a decision before you act on it. Guardrails and censors may refuse it; then mend it or do something else.
    You are told of similar decisions and how they ended."""

    description: str = Field(max_length=MAX_TEXT_CHARS, description="What is decided, in a sentence.")
    confidence: float = Field(ge=0, le=1, description="How sure you are that it turns out well, from 0 to 1.")
    stakes: Stakes = Field("medium", description="How much hangs on it.")
    category: str = Field("process", max_length=200, description="The kind of decision, e.g. architecture.")
    reasons: tuple[ReasonInput, ...] = Field(
        (), max_length=50, description="Why; reasons of different kinds count for more."
    )
    alternatives: tuple[str, ...] = Field((), max_length=50, description="What else was thought of.")
    expected: str | None = Field(None, max_length=MAX_TEXT_CHARS, description="What should come of it.")
    context: str | None = Field(None, max_length=MAX_TEXT_CHARS, description="What led to it.")


class ReviewInput(ToolInput):
    """Say what became of a decision, once it is known. It can be said only once."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")
    outcome: Verdict
    lesson: str | None = Field(None, max_length=MAX_TEXT_CHARS, description="What it teaches.")


class PushTaskInput(ToolInput):
    """Begin a task within the current one, so that the goal stays in sight."""

    goal: str = Field(max_length=MAX_TEXT_CHARS)


class PopTaskInput(ToolInput):
    """End the current task with its result; what led there is then told in a line."""

    result: str = Field(max_length=MAX_TEXT_CHARS)


class LessonInput(ToolInput):
    """Keep a lesson for next time: what to do, or not to do again, and in which case."""

    lesson: str = Field(max_length=MAX_TEXT_CHARS, description="One sentence that can be read alone.")
    about: str = Field("lessons", description="What it is about, e.g. 'deployments'.")


class ToolResult(NamedTuple):
    """What came of a call, as the model is told: fields, and the least trust of outside words among them."""

    fields: Mapping[str, object]
    trust: Trust | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolset:
    """The tools of one agent at one door. `believed` is how far at most what they keep is believed."""

    memories: MemoryService
    curation: CurationService
    decisions: DecisionService
    tasks: TaskService
    gate: ActionGate
    max_trust: Trust = "agent"

    def with_trust(self, tiers: Iterable[Trust | None]) -> "AgentToolset":
        """The same, when the model has read words that are believed so far."""
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
        """What came of a call, or why nothing did; only a database that fails is not for the model to hear of."""
        kind = TOOLS.get(name)
        try:
            if kind is None:
                raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(TOOLS)}.")
            form = parse_input(kind.input_model, arguments)
            warned = await self._check_censors(kind, form)
            told = await kind.handler(self, form)
            return told._replace(fields={**told.fields, "warning": warned}) if warned else told
        except DatabaseError:
            raise
        except NewtonError as error:
            return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)

    async def _check_censors(self, spec: "ToolSpec", args: ToolInput) -> str | None:
        """What a censor warns of. Raises CensoredError for what it forbids; nothing was done then."""
        if not spec.mutates:
            return None
        ruling = await self.gate.check(args.all_text(), "action")
        if ruling.blocks:
            raise CensorError(f"A censor forbids it: {ruling.message}.", hint="Nothing was kept. Do something else.")
        return ruling.message if ruling.matches else None


class ToolSpec(NamedTuple):
    """One tool: its form, what it does, and whether it changes anything."""

    input_model: type[ToolInput]
    handler: Callable[[AgentToolset, Any], Awaitable[ToolResult]]
    mutates: bool = True


def parse_input(model: type[F], arguments: str) -> F:
    """The form as it was filled in. Raises InputError."""
    try:
        return model.model_validate_json(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the arguments"
        raise InputError(f"{place}: {first['msg']}.", hint="Call it again with what its schema says.") from None


def list_tools(*, exclude: frozenset[str] = frozenset()) -> tuple[ToolDefinition, ...]:
    """All tools as models are told of them, but for those names."""
    return tuple(
        ToolDefinition(name, _function_schema(name, kind.input_model))
        for name, kind in TOOLS.items()
        if name not in exclude
    )


async def remember(toolset: AgentToolset, args: RememberInput) -> ToolResult:
    kept = await toolset.memories.remember(FactDraft(**args.model_dump()))
    return ToolResult({"memory_id": short_id(kept.memory_id), "learnt": str(kept.status)})


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
    whole, _, about = await toolset.curation.get(args.memory_id)
    fields = {
        "memory_id": short_id(whole.memory_id),
        "kind": whole.kind,
        "state": whole.state,
        "trust": whole.trust,
        "at": whole.occurred_at.isoformat(),
        "text": whole.full_text[:MAX_RESULT_CHARS],
        "left_out": max(len(whole.full_text) - MAX_RESULT_CHARS, 0),
        **({"about": about} if about else {}),
    }
    await toolset.memories.record_access([whole.memory_id])
    return ToolResult(fields, whole.trust if whole.quarantined else None)


async def decide(toolset: AgentToolset, args: DecideInput) -> ToolResult:
    choice = DecisionDraft(
        description=args.description,
        confidence=args.confidence,
        at=toolset.memories.scope.now(),
        context=args.context,
        alternatives=args.alternatives,
        reasons=tuple(DecisionReason(why.kind, why.text) for why in args.reasons),
        category=args.category,
        stakes=args.stakes,
        expected=args.expected,
    )
    decided = await toolset.decisions.decide(choice)
    return ToolResult(
        {"decision_id": short_id(decided.decision_id), "new": decided.is_new, **_preview_fields(decided.preview)}
    )


async def review(toolset: AgentToolset, args: ReviewInput) -> ToolResult:
    await toolset.decisions.review(args.decision_id, args.outcome, lesson=args.lesson, how="api")
    return ToolResult({"reviewed": args.outcome})


async def push_task(toolset: AgentToolset, args: PushTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.push(args.goal)).number})


async def pop_task(toolset: AgentToolset, args: PopTaskInput) -> ToolResult:
    return ToolResult({"task": (await toolset.tasks.pop(args.result)).number, "status": "complete"})


async def note_lesson(toolset: AgentToolset, args: LessonInput) -> ToolResult:
    kept = await toolset.memories.remember(FactDraft(content=args.lesson, subject=args.about))
    return ToolResult({"memory_id": short_id(kept.memory_id), "learnt": str(kept.status)})


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
    """What was to be seen before the decision, for whoever made it."""
    precedents = [
        {"decision_id": short_id(one.memory_id), "outcome": one.outcome, "text": one.summary}
        for one in preview.precedents
    ]
    warned = [ruling.message for ruling in preview.guardrail_results if ruling.message]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": warned} if warned else {}),
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
