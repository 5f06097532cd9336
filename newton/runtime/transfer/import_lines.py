"""Models of the line types of an import file, and the items to store that they are converted to."""

import json
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, BeforeValidator, Field, JsonValue, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.field_types import CleanText, Importance, MessageContent, Name, Ref, Timestamp
from newton.brain.decision_codec import DecisionReview, NewDecision
from newton.brain.decisions import DecisionLinkDraft
from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.content.documents import TextFormat, parse_text
from newton.content.sections import ParsedDocument
from newton.content.skills import SkillFile
from newton.content.yaml_files import StrictModel
from newton.dialogue.messages import Message, Role
from newton.errors import InputError
from newton.heart.censors import DEFAULT_THRESHOLD, CensorAction, CensorRule, MatchMode
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.episodes import NewEpisode
from newton.heart.events.event_types import EventData, validate_event
from newton.heart.facts.fact_store import NewFact
from newton.memory import hygiene
from newton.memory.memory import Outcome, normalize_importance
from newton.providers.chat import ToolCall


class MessageItem(NamedTuple):
    """A message to store in the named session."""

    session: str
    message: Message


class EventItem(NamedTuple):
    """An event to store; `session` names the session that it belongs to, or is None."""

    ref: str
    event: EventData
    session: str | None


class DocumentItem(NamedTuple):
    """A document to store, with its parsed text."""

    ref: str
    title: str
    format: TextFormat
    content: ParsedDocument


ImportItem = (
    MessageItem
    | NewFact
    | NewDecision
    | DecisionLinkDraft
    | NewEpisode
    | SkillFile
    | CensorRule
    | EventItem
    | EntityDeclaration
    | RelationDeclaration
    | DocumentItem
)


def _arguments_to_json(arguments: object) -> object:
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments


class ImportModel(BaseModel):
    model_config = StrictModel.model_config


class ImportLine(ImportModel):
    ref: Ref | None = None


class ToolCallInput(ImportModel):
    """A tool call of a message. `arguments` may be a JSON object or JSON text."""

    id: Ref
    name: Name
    arguments: Annotated[CleanText, BeforeValidator(_arguments_to_json)] = "{}"

    @property
    def tool_call(self) -> ToolCall:
        return ToolCall(self.id, self.name, self.arguments)


class MessageFields(BaseModel):
    """The fields of a message in an import file or in an HTTP request."""

    role: Role
    content: MessageContent = Field("", examples=["The staging server is restarted every Monday."])
    name: Name | None = Field(None, examples=["Ana"])
    calls: list[ToolCallInput] = Field([], description="The tool calls of an assistant message.")
    answers: Ref | None = Field(None, description="The id of the tool call that a tool message answers.")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        error = None
        if not self.content and not self.calls:
            error = "'content' is empty, and there are no tool calls"
        elif self.calls and self.role != "assistant":
            error = "only an assistant message may call tools"
        elif self.answers and self.role != "tool":
            error = "only a tool message may answer a call"
        if error:
            raise PydanticCustomError("refused", "{error}", {"error": error})
        return self

    def to_message(self, *, ref: str | None, said_at: datetime, occurrence: int = 0) -> Message:
        own = {name: getattr(self, name) for name in ("role", "content", "name")}
        calls = tuple(call.tool_call for call in self.calls)
        return Message(**own, ref=ref, said_at=said_at, calls=calls, tool_call_id=self.answers, occurrence=occurrence)


class MessageImportLine(ImportLine, MessageFields):
    type: Literal["message"]
    session: Ref
    at: Timestamp

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        return MessageItem(self.session, self.to_message(ref=self.ref, said_at=self.at, occurrence=occurrence))


class FactImportLine(ImportLine):
    type: Literal["fact"]
    content: CleanText
    subject: Name | None = None
    attribute: Name | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    importance: Importance | None = None
    at: Timestamp
    until: Timestamp | None = None
    tags: Annotated[list[Name], Field(max_length=50)] = []

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        own = self.model_dump(exclude={"type", "ref", "importance", "at", "until", "tags"})
        own |= {"importance": normalize_importance(self.importance), "tags": tuple(self.tags)}
        return NewFact(ref=ref, valid_from=self.at, valid_to=self.until, **own)


class EpisodeImportLine(ImportLine):
    type: Literal["episode"]
    title: Name
    content: CleanText
    participants: list[Name] = []
    outcome: Outcome | None = None
    importance: Importance | None = None
    at: Timestamp
    ended_at: Timestamp | None = None

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        ended_at = self.ended_at or self.at
        if ended_at < self.at:
            raise InputError("'ended_at' is before 'at'.", hint="An episode ends after it begins.")
        return NewEpisode(
            ref=ref,
            started_at=self.at,
            ended_at=ended_at,
            participants=tuple(self.participants),
            importance=normalize_importance(self.importance),
            **self.model_dump(include={"title", "content", "outcome"}),
        )


class ReasonLine(ImportModel):
    kind: ReasonKind
    text: CleanText


class DecisionImportLine(ImportLine):
    type: Literal["decision"]
    description: CleanText
    confidence: Annotated[float, Field(ge=0, le=1)]
    context: CleanText | None = None
    alternatives: list[CleanText] = []
    reasons: list[ReasonLine] = []
    tags: list[Name] = []
    category: Name = "process"
    stakes: Stakes = "medium"
    frame: Name | None = None
    expected: CleanText | None = None
    look_again_at: Timestamp | None = None
    at: Timestamp
    outcome: Verdict | None = None
    lesson: CleanText | None = None
    reviewed_at: Timestamp | None = None

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        """Convert the line to the decision to store. An outcome without `reviewed_at` gets the time of the decision."""
        if self.outcome is None and (self.lesson or self.reviewed_at):
            raise InputError("there is no 'outcome'.", hint="A 'lesson' and a 'reviewed_at' require an 'outcome'.")
        lists = {"alternatives": tuple(self.alternatives), "tags": tuple(self.tags)}
        own = self.model_dump(exclude={"type", "ref", "reasons", "outcome", "lesson", "reviewed_at", *lists})
        reasons = tuple(DecisionReason(reason.kind, reason.text) for reason in self.reasons)
        review = self.outcome and DecisionReview(
            verdict=self.outcome, at=self.reviewed_at or self.at, how="import", lesson=self.lesson
        )
        return NewDecision(draft=DecisionDraft(ref=ref, reasons=reasons, **lists, **own), review=review)


class DecisionLinkImportLine(ImportLine):
    type: Literal["decision_link"]
    source: Ref
    link: Literal["supersedes", "depends_on", "relates", "contradicts"]
    target: Ref

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        return DecisionLinkDraft(self.source, self.link, self.target)


class ProcedureImportLine(ImportLine):
    type: Literal["procedure"]
    name: str
    description: CleanText
    domain: Name | None = None
    triggers: list[CleanText] = []
    goals: list[CleanText] = []
    steps: Annotated[list[CleanText], Field(min_length=1)]
    details: CleanText | None = None

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        """Convert the line to a procedure. Procedures are identified by name, so `ref` is ignored."""
        own = self.model_dump(include={"name", "description", "domain", "details"}, exclude_none=True)
        return SkillFile(triggers=tuple(self.triggers), goals=tuple(self.goals), core=tuple(self.steps), **own)


class CensorImportLine(ImportLine):
    type: Literal["censor"]
    trigger: CleanText
    reason: CleanText
    sense: MatchMode = "phrase"
    action: CensorAction = "warn"
    domain: Name | None = None
    threshold: int = DEFAULT_THRESHOLD

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        return CensorRule(ref=ref, match_mode=self.sense, **self.model_dump(exclude={"type", "ref", "sense"}))


class EventImportLine(ImportLine):
    type: Literal["event"]
    event_type: str
    payload: dict[str, JsonValue]
    session: Ref | None = None
    at: Timestamp

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        event = validate_event(self.event_type, self.at, self.payload)
        return EventItem(self.ref or f"{ref} {occurrence}", event, self.session)  # identical events are distinct


class EntityImportLine(ImportLine):
    type: Literal["entity"]
    name: Name
    entity_type: Name = "thing"
    aliases: list[Name] = []
    properties: dict[Name, str | int | float | bool] = {}
    at: Timestamp | None = None

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        properties = {
            key: hygiene.clean_text(value) if isinstance(value, str) else value
            for key, value in self.properties.items()
        }
        aliases, type_ = tuple(self.aliases), self.entity_type
        return EntityDeclaration(
            name=self.name, type=type_, aliases=aliases, properties=properties, occurred_at=self.at
        )


class RelationImportLine(ImportLine):
    type: Literal["relation"]
    source: Name
    relation_type: Name
    target: Name
    at: Timestamp | None = None

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        return RelationDeclaration(
            ref=ref, source=self.source, type=self.relation_type, target=self.target, occurred_at=self.at
        )


class DocumentImportLine(ImportLine):
    type: Literal["document"]
    title: Name | None = None
    format: TextFormat = "markdown"
    content: CleanText

    def to_item(self, ref: str, occurrence: int) -> ImportItem:
        if self.ref is None:
            raise InputError(
                "the document has no 'ref'.",
                hint="Add one: an id of your own that stays the same when the document is imported again.",
            )
        document = parse_text(self.content, self.format)
        return DocumentItem(ref, self.title or document.title or ref, self.format, document)


AnyImportLine = (
    MessageImportLine
    | FactImportLine
    | EpisodeImportLine
    | DecisionImportLine
    | DecisionLinkImportLine
    | ProcedureImportLine
    | CensorImportLine
    | EventImportLine
    | EntityImportLine
    | RelationImportLine
    | DocumentImportLine
)
LINE_ADAPTER: TypeAdapter[AnyImportLine] = TypeAdapter(Annotated[AnyImportLine, Field(discriminator="type")])

LINE_TYPES: tuple[str, ...] = tuple(
    get_args(model.model_fields["type"].annotation)[0] for model in get_args(AnyImportLine)
)
