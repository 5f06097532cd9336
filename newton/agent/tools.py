"""What a model may do with the memory while it works: each tool is a form, a check in code, and one call.

A model proposes content. Origin, trust, state and identity are set by code: what it has kept is believed no more than
an agent, and no more than the least of what it had read.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from newton.agent.curation import Curation
from newton.agent.deciding import Deciding, Outlook
from newton.agent.gate import Gate
from newton.agent.tasks import Tasks
from newton.agent.verbs import Remark, Verbs
from newton.brain.choice import Choice, Reason, ReasonKind, Stakes, Verdict
from newton.errors import CensoredError, DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import short
from newton.memory.memory import Trust, least, least_of
from newton.providers.chat import Tool

MOST_WORDS = 20_000  # characters of a text that a model gives
MOST_RESULT = 6_000  # characters of what it is told

F = TypeVar("F", bound="Form")


class Form(BaseModel):
    """What a model fills in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def words(self) -> str:
        """All the text in it: what censors are asked about."""
        return "\n".join(_texts(self.model_dump(mode="json")))


class ToRemember(Form):
    """Keep a fact for good: what you learnt about a person, a thing or the work, one statement in a full sentence that
    can be read alone. Not what is in the context already, and never secrets."""

    content: str = Field(max_length=MOST_WORDS, description="One statement, e.g. 'Ana reviews every migration.'")
    subject: str | None = Field(None, description="Whom or what it is about, e.g. 'Ana'.")
    attribute: str | None = Field(None, description="What it tells of the subject, e.g. 'home' or 'role'.")
    confidence: float | None = Field(None, ge=0, le=1, description="How sure it is, from 0 to 1.")


class ToRecall(Form):
    """Search the memory: conversations, facts, episodes, procedures, documents, decisions. Ask for what is missing in
    the context; each result has an id for `expand`."""

    query: str = Field(max_length=MOST_WORDS, description="What you want to know, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="How many at most.")


class ToExpand(Form):
    """Read one memory in full, with where it comes from and how far it can be believed."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")


class Why(Form):
    kind: ReasonKind = "analysis"
    text: str = Field(max_length=MOST_WORDS)


class ToDecide(Form):
    """Record a decision before you act on it. Guardrails and censors may refuse it; then mend it or do something else.
    You are told of similar decisions and how they ended."""

    description: str = Field(max_length=MOST_WORDS, description="What is decided, in a sentence.")
    confidence: float = Field(ge=0, le=1, description="How sure you are that it turns out well, from 0 to 1.")
    stakes: Stakes = Field("medium", description="How much hangs on it.")
    category: str = Field("process", max_length=200, description="The kind of decision, e.g. architecture.")
    reasons: tuple[Why, ...] = Field((), max_length=50, description="Why; reasons of different kinds count for more.")
    alternatives: tuple[str, ...] = Field((), max_length=50, description="What else was thought of.")
    expected: str | None = Field(None, max_length=MOST_WORDS, description="What should come of it.")
    context: str | None = Field(None, max_length=MOST_WORDS, description="What led to it.")


class ToReview(Form):
    """Say what became of a decision, once it is known. It can be said only once."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")
    outcome: Verdict
    lesson: str | None = Field(None, max_length=MOST_WORDS, description="What it teaches.")


class ToPush(Form):
    """Begin a task within the current one, so that the goal stays in sight."""

    goal: str = Field(max_length=MOST_WORDS)


class ToPop(Form):
    """End the current task with its result; what led there is then told in a line."""

    result: str = Field(max_length=MOST_WORDS)


class Lesson(Form):
    """Keep a lesson for next time: what to do, or not to do again, and in which case."""

    lesson: str = Field(max_length=MOST_WORDS, description="One sentence that can be read alone.")
    about: str = Field("lessons", description="What it is about, e.g. 'deployments'.")


class Told(NamedTuple):
    """What came of a call, as the model is told: fields, and the least trust of outside words among them."""

    fields: Mapping[str, object]
    trust: Trust | None = None
    error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """The tools of one agent at one door. `believed` is how far at most what they keep is believed."""

    verbs: Verbs
    curation: Curation
    deciding: Deciding
    tasks: Tasks
    gate: Gate
    believed: Trust = "agent"

    def heard(self, tiers: Iterable[Trust | None]) -> "Toolbox":
        """The same, when the model has read words that are believed so far."""
        trust = least([self.believed, *(tier for tier in tiers if tier)])
        return replace(
            self,
            believed=trust,
            verbs=replace(self.verbs, scope=self.verbs.scope.at(self.verbs.scope.origin, trust)),
            deciding=replace(self.deciding, scope=self.deciding.scope.at(self.deciding.scope.origin, trust)),
        )

    def of(self, session_id: UUID) -> "Toolbox":
        return replace(self, tasks=self.tasks.of(session_id))

    async def use(self, name: str, arguments: str) -> Told:
        """What came of a call, or why nothing did; only a database that fails is not for the model to hear of."""
        kind = KINDS.get(name)
        try:
            if kind is None:
                raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(KINDS)}.")
            form = read(kind.form, arguments)
            warned = await self._checked(kind, form)
            told = await kind.act(self, form)
            return told._replace(fields={**told.fields, "warning": warned}) if warned else told
        except DatabaseError:
            raise
        except NewtonError as error:
            return Told({"error": error.what, "hint": error.hint, "code": error.code}, error=True)

    async def _checked(self, kind: "Kind", form: Form) -> str | None:
        """What a censor warns of. Raises CensoredError for what it forbids; nothing was done then."""
        if not kind.acts:
            return None
        ruling = await self.gate.check(form.words(), "action")
        if ruling.blocks:
            raise CensoredError(f"A censor forbids it: {ruling.words}.", hint="Nothing was kept. Do something else.")
        return ruling.words if ruling.met else None


class Kind(NamedTuple):
    """One tool: its form, what it does, and whether it changes anything."""

    form: type[Form]
    act: Callable[[Toolbox, Any], Awaitable[Told]]
    acts: bool = True


def read(form: type[F], arguments: str) -> F:
    """The form as it was filled in. Raises InputError."""
    try:
        return form.model_validate_json(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the arguments"
        raise InputError(f"{place}: {first['msg']}.", hint="Call it again with what its schema says.") from None


def offered(*, without: frozenset[str] = frozenset()) -> tuple[Tool, ...]:
    """All tools as models are told of them, but for those names."""
    return tuple(Tool(name, _function(name, kind.form)) for name, kind in KINDS.items() if name not in without)


async def remember(box: Toolbox, form: ToRemember) -> Told:
    kept = await box.verbs.remember(Remark(**form.model_dump()))
    return Told({"memory_id": short(kept.memory_id), "learnt": str(kept.learnt)})


async def recall(box: Toolbox, form: ToRecall) -> Told:
    recalled = await box.verbs.recall(form.query, most=form.limit)
    found = [
        {"memory_id": short(one.memory_id), "kind": one.kind, "trust": one.trust, "text": one.summary}
        for one in recalled.found
    ]
    missing = {"missing": dict(recalled.missing)} if recalled.missing else {}
    return Told({"found": found, **missing}, least_of(one.trust for one in recalled.found if one.quarantined))


async def expand(box: Toolbox, form: ToExpand) -> Told:
    whole, _, about = await box.curation.look(form.memory_id)
    fields = {
        "memory_id": short(whole.memory_id),
        "kind": whole.kind,
        "state": whole.state,
        "trust": whole.trust,
        "at": whole.occurred_at.isoformat(),
        "text": whole.full_text[:MOST_RESULT],
        "left_out": max(len(whole.full_text) - MOST_RESULT, 0),
        **({"about": about} if about else {}),
    }
    await box.verbs.read([whole.memory_id])
    return Told(fields, whole.trust if whole.quarantined else None)


async def decide(box: Toolbox, form: ToDecide) -> Told:
    choice = Choice(
        description=form.description,
        confidence=form.confidence,
        at=box.verbs.scope.now(),
        context=form.context,
        alternatives=form.alternatives,
        reasons=tuple(Reason(why.kind, why.text) for why in form.reasons),
        category=form.category,
        stakes=form.stakes,
        expected=form.expected,
    )
    decided = await box.deciding.decide(choice)
    return Told({"decision_id": short(decided.decision_id), "new": decided.new, **_seen(decided.outlook)})


async def review(box: Toolbox, form: ToReview) -> Told:
    await box.deciding.review(form.decision_id, form.outcome, lesson=form.lesson, how="api")
    return Told({"reviewed": form.outcome})


async def push_task(box: Toolbox, form: ToPush) -> Told:
    return Told({"task": (await box.tasks.push(form.goal)).number})


async def pop_task(box: Toolbox, form: ToPop) -> Told:
    return Told({"task": (await box.tasks.pop(form.result)).number, "status": "complete"})


async def note_lesson(box: Toolbox, form: Lesson) -> Told:
    kept = await box.verbs.remember(Remark(content=form.lesson, subject=form.about))
    return Told({"memory_id": short(kept.memory_id), "learnt": str(kept.learnt)})


KINDS: Mapping[str, Kind] = {
    "remember": Kind(ToRemember, remember),
    "recall": Kind(ToRecall, recall, acts=False),
    "expand": Kind(ToExpand, expand, acts=False),
    "decide": Kind(ToDecide, decide),
    "review": Kind(ToReview, review),
    "push_task": Kind(ToPush, push_task),
    "pop_task": Kind(ToPop, pop_task),
    "note_lesson": Kind(Lesson, note_lesson),
}


def _seen(outlook: Outlook) -> dict[str, object]:
    """What was to be seen before the decision, for whoever made it."""
    precedents = [
        {"decision_id": short(one.memory_id), "outcome": one.outcome, "text": one.summary} for one in outlook.precedents
    ]
    warned = [ruling.words for ruling in outlook.rulings if ruling.words]
    return {
        **({"precedents": precedents} if precedents else {}),
        **({"guardrails": warned} if warned else {}),
        "success_rate_of_category": outlook.standing.category_success_rate,
    }


def _function(name: str, form: type[Form]) -> dict[str, object]:
    schema = form.model_json_schema()
    described = " ".join((form.__doc__ or "").split())
    parameters = {field: one for field, one in schema.items() if field not in ("title", "description")}
    return {"name": name, "description": described, "parameters": parameters}


def _texts(given: object) -> Iterator[str]:
    match given:
        case str():
            yield given
        case dict() | list() | tuple():
            for one in given.values() if isinstance(given, dict) else given:  # pyright: ignore[reportUnknownVariableType]  # JSON
                yield from _texts(one)  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case _:
            return
