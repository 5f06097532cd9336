"""What each line of an import file may say, and the thing it asks Newton to keep."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, Protocol, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    model_validator,
)
from pydantic_core import PydanticCustomError

from newton.brain.choice import Choice, Reason, ReasonKind, Stakes, Verdict
from newton.brain.stating import Intent, Review
from newton.content.documents import Written, reading
from newton.content.sections import Reading
from newton.content.skills import Skill
from newton.dialogue.lines import Line, Role
from newton.errors import InputError
from newton.heart.censors import THRESHOLD, Action, Rule, Sense
from newton.heart.entities import Introduction
from newton.heart.episodes import Experience
from newton.heart.facts import Statement
from newton.heart.happenings import Event, checked
from newton.heart.introducing import Bond
from newton.memory import hygiene
from newton.memory.importance import share_of
from newton.memory.memory import Outcome
from newton.providers.chat import Call

T = TypeVar("T")

_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")


class Said(NamedTuple):
    """A line of dialogue, in the session of that name."""

    session: str
    line: Line


class Happened(NamedTuple):
    """An event, perhaps in the session of that name."""

    ref: str
    event: Event
    session: str | None


class Paper(NamedTuple):
    """A document with its text as it was read."""

    ref: str
    title: str
    format: Written
    reading: Reading


Item = Said | Statement | Intent | Experience | Skill | Rule | Happened | Introduction | Bond | Paper


def _name(text: str) -> str:
    return _checked(lambda: hygiene.name(text, what="text"))


def _ref(text: str) -> str:
    return _checked(lambda: hygiene.ref(text, what="text"))


def _words(text: str) -> str:
    return _checked(lambda: hygiene.clean(text, what="text"))


def _message(text: str) -> str:
    return _checked(lambda: hygiene.clean(text, what="text", most=hygiene.MAX_MESSAGE)) if text else text


def _as_text(arguments: object) -> object:
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments


def _written(at: object) -> object:
    """Of numbers, and of texts of digits alone, pydantic would make times in 1970."""
    if not (isinstance(at, str) and _DATED.match(at)):
        raise PydanticCustomError("time", "must be a time such as 2023-05-08T13:56:00Z")
    return at


def _moment(at: datetime) -> datetime:
    return _checked(lambda: hygiene.moment(at))


def _checked(rule: Callable[[], T]) -> T:
    """What the rule says, as pydantic wants to hear it: then it names the field."""
    try:
        return rule()
    except InputError as error:
        raise PydanticCustomError("refused", "{what}", {"what": error.what.rstrip(".")}) from None


Name = Annotated[str, AfterValidator(_name)]
Ref = Annotated[str, AfterValidator(_ref)]
Words = Annotated[str, AfterValidator(_words)]
Utterance = Annotated[str, AfterValidator(_message)]
Time = Annotated[datetime, Field(strict=False), BeforeValidator(_written), AfterValidator(_moment)]
Importance = Annotated[float, Field(ge=0, le=10)]


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    ref: Ref | None = None


class GivenCall(BaseModel):
    """A call of a tool. Its arguments are JSON, as such or as text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Ref
    name: Name
    arguments: Annotated[str, BeforeValidator(_as_text), AfterValidator(_words)] = "{}"

    @property
    def call(self) -> Call:
        return Call(self.id, self.name, self.arguments)


class Spoken(Protocol):
    """What a message says, and to whom."""

    @property
    def role(self) -> Role: ...
    @property
    def content(self) -> str: ...
    @property
    def calls(self) -> Sequence[GivenCall]: ...
    @property
    def answers(self) -> str | None: ...


def misspoken(said: Spoken) -> str | None:
    """Why nobody can have said that."""
    if not said.content and not said.calls:
        return "'content' is empty, and nothing is called"
    if said.calls and said.role != "assistant":
        return "only an assistant calls tools"
    if said.answers and said.role != "tool":
        return "only a tool answers a call"
    return None


class GivenMessage(Given):
    type: Literal["message"]
    session: Ref
    role: Role
    name: Name | None = None
    content: Utterance = ""
    calls: list[GivenCall] = []
    answers: Ref | None = None
    at: Time

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if fault := misspoken(self):
            raise PydanticCustomError("refused", "{fault}", {"fault": fault})
        return self

    def item(self, ref: str, nth: int) -> Item:
        line = Line(
            role=self.role,
            name=self.name,
            content=self.content,
            said_at=self.at,
            ref=self.ref,
            calls=tuple(given.call for given in self.calls),
            answers=self.answers,
            nth=nth,
        )
        return Said(self.session, line)


class GivenFact(Given):
    type: Literal["fact"]
    content: Words
    subject: Name | None = None
    attribute: Name | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    importance: Importance | None = None
    at: Time
    until: Time | None = None

    def item(self, ref: str, nth: int) -> Item:
        given = self.model_dump(exclude={"type", "ref", "importance"})
        return Statement(ref=ref, importance=share_of(self.importance), **given)


class GivenEpisode(Given):
    type: Literal["episode"]
    title: Name
    content: Words
    participants: list[Name] = []
    outcome: Outcome | None = None
    importance: Importance | None = None
    at: Time
    ended_at: Time | None = None

    def item(self, ref: str, nth: int) -> Item:
        ended = self.ended_at or self.at
        if ended < self.at:
            raise InputError("'ended_at' is before 'at'.", hint="An episode ends after it begins.")
        return Experience(
            ref=ref,
            title=self.title,
            content=self.content,
            started_at=self.at,
            ended_at=ended,
            participants=tuple(self.participants),
            outcome=self.outcome,
            importance=share_of(self.importance),
        )


class GivenReason(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: ReasonKind
    text: Words


class GivenDecision(Given):
    type: Literal["decision"]
    description: Words
    confidence: Annotated[float, Field(ge=0, le=1)]
    context: Words | None = None
    alternatives: list[Words] = []
    reasons: list[GivenReason] = []
    tags: list[Name] = []
    category: Name = "process"
    stakes: Stakes = "medium"
    frame: Name | None = None
    expected: Words | None = None
    look_again_at: Time | None = None
    at: Time
    outcome: Verdict | None = None
    lesson: Words | None = None
    reviewed_at: Time | None = None

    def item(self, ref: str, nth: int) -> Item:
        """Without a time of its own its outcome was known at once."""
        if self.outcome is None and (self.lesson or self.reviewed_at):
            raise InputError("there is no 'outcome'.", hint="A lesson and the time of a review belong to one.")
        given = self.model_dump(
            exclude={"type", "ref", "alternatives", "reasons", "tags", "outcome", "lesson", "reviewed_at"}
        )
        choice = Choice(
            ref=ref,
            alternatives=tuple(self.alternatives),
            reasons=tuple(Reason(reason.kind, reason.text) for reason in self.reasons),
            tags=tuple(self.tags),
            **given,
        )
        review = self.outcome and Review(
            verdict=self.outcome, at=self.reviewed_at or self.at, how="import", lesson=self.lesson
        )
        return Intent(choice=choice, review=review or None)


class GivenProcedure(Given):
    type: Literal["procedure"]
    name: str
    description: Words
    domain: Name | None = None
    triggers: list[Words] = []
    goals: list[Words] = []
    steps: Annotated[list[Words], Field(min_length=1)]
    details: Words | None = None

    def item(self, ref: str, nth: int) -> Item:
        """The name is what names it; a ref of the caller's is not kept."""
        given = self.model_dump(include={"name", "description", "domain", "details"}, exclude_none=True)
        return Skill(triggers=tuple(self.triggers), goals=tuple(self.goals), core=tuple(self.steps), **given)


class GivenCensor(Given):
    type: Literal["censor"]
    trigger: Words
    reason: Words
    sense: Sense = "phrase"
    action: Action = "warn"
    domain: Name | None = None
    threshold: int = THRESHOLD

    def item(self, ref: str, nth: int) -> Item:
        return Rule(ref=ref, **self.model_dump(exclude={"type", "ref"}))


class GivenEvent(Given):
    type: Literal["event"]
    event_type: str
    payload: dict[str, JsonValue]
    session: Ref | None = None
    at: Time

    def item(self, ref: str, nth: int) -> Item:
        # the same event may happen twice in one moment
        return Happened(self.ref or f"{ref} {nth}", checked(self.event_type, self.at, self.payload), self.session)


class GivenEntity(Given):
    type: Literal["entity"]
    name: Name
    entity_type: Name = "thing"
    aliases: list[Name] = []
    properties: dict[Name, str | int | float | bool] = {}
    at: Time | None = None

    def item(self, ref: str, nth: int) -> Item:
        properties: Mapping[str, str | int | float | bool] = {
            key: _words(value) if isinstance(value, str) else value for key, value in self.properties.items()
        }
        return Introduction(
            name=self.name, type=self.entity_type, aliases=tuple(self.aliases), properties=properties, at=self.at
        )


class GivenRelation(Given):
    type: Literal["relation"]
    source: Name
    relation_type: Name
    target: Name
    at: Time | None = None

    def item(self, ref: str, nth: int) -> Item:
        return Bond(ref=ref, source=self.source, type=self.relation_type, target=self.target, at=self.at)


class GivenDocument(Given):
    type: Literal["document"]
    title: Name | None = None
    format: Written = "markdown"
    content: Words

    def item(self, ref: str, nth: int) -> Item:
        if self.ref is None:
            raise InputError("the document has no 'ref'.", hint="By it the document is known when it comes again.")
        read = reading(self.content, self.format)
        return Paper(ref, self.title or read.title or ref, self.format, read)


AnyLine = (
    GivenMessage
    | GivenFact
    | GivenEpisode
    | GivenDecision
    | GivenProcedure
    | GivenCensor
    | GivenEvent
    | GivenEntity
    | GivenRelation
    | GivenDocument
)
GIVEN: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="type")])

TYPES: tuple[str, ...] = tuple(get_args(model.model_fields["type"].annotation)[0] for model in get_args(AnyLine))
