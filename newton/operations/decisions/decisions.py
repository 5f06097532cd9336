"""Operations on decisions, which are recorded with a confidence before they are carried out, and reviewed later."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Timestamp
from newton.brain.decisions import DecisionAmendment, ManualLink
from newton.brain.drafts import Stakes, Verdict
from newton.brain.queries import CategoryCount, DecisionFilter, DecisionOutcome, DecisionSummary
from newton.operations.cursors import decode_id_cursor, encode_cursor
from newton.operations.decisions.formats import format_decision, format_outcome, format_summary
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, Cursor, DecisionRef, Limit
from newton.operations.results import CursorPage, ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

NOT_FOR_MODELS = "A model does not need this: Newton does it by itself, or a person does it."
CategoryFilter = Annotated[Name | None, Field(description="Only decisions of this category.")]
OutcomeFilter = Annotated[Verdict | None, Field(description="Only decisions with this outcome.")]
Lesson = Annotated[CleanText | None, Field(description="A lesson for similar decisions.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionChange:
    """The id of the changed decision."""

    decision_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutcome:
    """The recorded outcome of a decision. `counts` is false if it is only shown, because a person reviews theirs."""

    decision_id: UUID
    outcome: Verdict
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedDecision:
    """The decision whose text is erased. `changed` is false if it was erased before."""

    decision_id: UUID
    changed: bool


def _format_category(one: CategoryCount) -> str:
    return f"{pluralize(one.decisions, 'decision'):>16}  {one.reviewed:>6} reviewed  {one.name}"


def _format_erased(erased: ErasedDecision) -> str:
    return "Text of the decision erased." if erased.changed else "The text is erased already; nothing changed."


@operation(
    "GET /v1/decisions",
    "reads",
    name="decisions",
    command="decisions list",
    text=format_summary,
    empty="No matching decision.",
)
async def list_decisions(
    caller: "OperationCaller",
    *,
    due: Annotated[
        bool, Field(description="Only decisions without an outcome whose review date has passed, sorted by that date.")
    ] = False,
    open: Annotated[bool, Field(description="Only decisions without an outcome.")] = False,
    category: CategoryFilter = None,
    stakes: Annotated[Stakes | None, Field(description="Only decisions with these stakes.")] = None,
    outcome: OutcomeFilter = None,
    tag: Annotated[Name | None, Field(description="Only decisions with this tag.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> CursorPage[DecisionSummary]:
    """List the recorded decisions, newest first: all, only those without an outcome, or only those due for review.

    Those due for review are one page.

    Example: newton decisions list --due
    """
    before, rows = (None, limit) if due else (decode_id_cursor(cursor), limit + 1)
    criteria = DecisionFilter(due=due, open=open, category=category, stakes=stakes, outcome=outcome, tag=tag)
    found = await caller.decisions.list_decisions(replace(criteria, before=before, limit=rows))
    items = found[:limit]
    return CursorPage(items=items, next=encode_cursor(str(items[-1].decision_id)) if len(found) > limit else None)


@operation(
    "GET /v1/decisions/categories",
    "reads",
    name="decision_categories",
    command="decisions categories",
    text=_format_category,
    empty="No decision is recorded yet.",
)
async def list_categories(caller: "OperationCaller") -> ItemList[CategoryCount]:
    """List the categories of the decisions, most used first, with the number of decisions and of reviewed ones.

    Example: newton decisions categories
    """
    return ItemList(items=await caller.decisions.list_categories())


@operation(
    "GET /v1/decisions/outcomes",
    "reads",
    name="outcomes",
    command="outcomes",
    text=format_outcome,
    empty="No decision has been reviewed yet.",
)
async def list_outcomes(
    caller: "OperationCaller", *, category: CategoryFilter = None, outcome: OutcomeFilter = None, limit: Limit = 50
) -> ItemList[DecisionOutcome]:
    """List the reviewed decisions with their outcomes and lessons, latest review first, to learn from them.

    Example: newton outcomes --category cost
    """
    return ItemList(items=await caller.decisions.list_outcomes(category=category, outcome=outcome, limit=limit))


@operation("GET /v1/decisions/{decision_id}", "reads", name="decision", command="decisions show", text=format_decision)
async def show_decision(caller: "OperationCaller", decision_id: DecisionRef) -> dict[str, Any]:
    """Show a decision in full: its reasons, alternatives, thoughts, amendments, links, history and its outcome.

    Example: newton decisions show 3f9c2a71
    """
    detail = await caller.decisions.get(decision_id)
    history = (await caller.curation.get(str(detail.memory.memory_id))).changes
    return detail.to_fields(history)


@operation(
    "POST /v1/decisions/{decision_id}/thoughts",
    "adds",
    act="state",
    name="think",
    command="think",
    text=lambda _: "Thought added.",
)
async def add_thought(
    caller: "OperationCaller",
    decision_id: DecisionRef,
    text: Annotated[CleanText, Field(description="The thought, in one or a few sentences.")],
) -> DecisionChange:
    """Add a thought to a decision without an outcome: a step of the deliberation, a doubt, or new information.

    Example: newton think 3f9c2a71 "What if the cache is cold?"
    """
    return DecisionChange(decision_id=await caller.decisions.add_thought(decision_id, text))


@operation(
    "POST /v1/decisions/{decision_id}/done",
    "changes",
    act="work",
    name="done",
    command="done",
    text=lambda _: "The decision is marked as done. Record the outcome with `newton review`.",
    is_idempotent=True,
)
async def mark_done(caller: "OperationCaller", decision_id: DecisionRef) -> DecisionChange:
    """Mark a decision as carried out. Its outcome is still open, and is recorded once it is known.

    Example: newton done 3f9c2a71
    """
    return DecisionChange(decision_id=await caller.decisions.mark_done(decision_id))


async def _list_reviewed(_: object, decision_id: str, **__: object) -> list[str]:
    return [decision_id]


async def _list_amended(_: object, decision_id: str, text: str | None = None, **fields: object) -> list[str]:
    """Return nothing if only a text is added, which changes no statement."""
    return [decision_id] if any(one is not None for one in fields.values()) else []


@operation(
    "POST /v1/decisions/{decision_id}/review",
    "changes",
    act="report",
    list_targets=_list_reviewed,
    name="review",
    command="review",
    text=lambda review: (
        f"{'Reviewed' if review.counts else 'Noted, open until a person reviews it'}: {review.outcome}."
    ),
    core=("decision_id", "outcome", "lesson", "reviewed_at"),
)
async def review_decision(
    caller: "OperationCaller",
    decision_id: DecisionRef,
    outcome: Annotated[Verdict, Field(description="How the decision turned out: success, partial or failure.")],
    *,
    lesson: Lesson = None,
    reviewed_at: Annotated[
        Timestamp | None, Field(description="When the outcome became known. Default: now."), CommandOption("at")
    ] = None,
) -> RecordedOutcome:
    """Record the outcome of a decision once it is known. It can be recorded only once, but a person's outcome takes
    the place of a model's.

    What a model says of a person's decision is shown with it, and the person's review stays open.

    Example: newton review 3f9c2a71 success --lesson "warm the cache before switching over"
    """
    service, counts = caller.decisions, caller.counts
    changed = await service.review(decision_id, outcome, lesson=lesson, reviewed_at=reviewed_at, counts=counts)
    return RecordedOutcome(decision_id=changed, outcome=outcome, counts=counts)


@operation(
    "POST /v1/decisions/{decision_id}/amendments",
    "adds",
    act="displace",
    list_targets=_list_amended,
    command="decisions amend",
    text=lambda _: "Decision amended.",
    absent={"mcp": NOT_FOR_MODELS},
)
async def amend_decision(
    caller: "OperationCaller",
    decision_id: DecisionRef,
    text: Annotated[CleanText | None, Field(description="Text to add.")] = None,
    *,
    tags: Annotated[
        tuple[Name, ...] | None, Field(description="The new tags, which replace all others."), CommandOption("tag")
    ] = None,
    category: Annotated[Name | None, Field(description="The new category.")] = None,
    look_again_at: Annotated[
        Timestamp | None,
        Field(description="The new review date: when the outcome should be known."),
        CommandOption("review-due"),
    ] = None,
) -> DecisionChange:
    """Add text to a decision, or change its tags, category or review date. The original record is kept unchanged.

    Example: newton decisions amend 3f9c2a71 "The budget was cut since" --category cost --tag money
    """
    amendment = DecisionAmendment(text=text, tags=tags, category=category, look_again_at=look_again_at)
    return DecisionChange(decision_id=await caller.decisions.amend(decision_id, amendment))


async def _list_superseded(_: object, *, other_id: str, type: str, **__: object) -> list[str]:
    return [other_id] if type == "supersedes" else []


@operation(
    "POST /v1/decisions/{decision_id}/links",
    "adds",
    act="displace",
    command="decisions link",
    text=lambda _: "Decisions linked.",
    absent={"mcp": NOT_FOR_MODELS},
    list_targets=_list_superseded,
)
async def link_decisions(
    caller: "OperationCaller",
    decision_id: DecisionRef,
    other_id: DecisionRef,
    *,
    type: Annotated[
        Literal[ManualLink, "supersedes"], Field(description="What the decision does to the other one.")
    ] = "relates",
) -> DecisionChange:
    """Link a decision to another one. With the type `supersedes`, the decision replaces the other one.

    Example: newton decisions link 3f9c2a71 0b7d114e --type depends_on
    """
    service = caller.decisions
    if type == "supersedes":
        return DecisionChange(decision_id=await service.supersede(decision_id, other_id))
    return DecisionChange(decision_id=await service.link(decision_id, type, other_id))


@operation(
    "POST /v1/decisions/{decision_id}/erase",
    "destroys",
    act="delete",
    command="decisions erase",
    text=_format_erased,
    question="Permanently erase the text of this decision?",
    absent={"mcp": "A person decides about this; the record of a decision is not the model's to erase."},
)
async def erase_decision(
    caller: "OperationCaller",
    decision_id: DecisionRef,
    *,
    reason: Annotated[CleanText, Field(description="Reason of the deletion, which is recorded.")],
) -> ErasedDecision:
    """Permanently erase the text of a decision. Its record (without text) and its outcome remain.

    Example: newton decisions erase 3f9c2a71 --reason "it names a person"
    """
    erased, changed = await caller.decisions.erase(decision_id, reason=reason)
    return ErasedDecision(decision_id=erased, changed=changed)
