"""Operations on the working memory of a session: the memories that it stored, showed or read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Name
from newton.agent.services.working_memory import DEFAULT_STRATEGY, WorkingSetStats
from newton.cognition.assembly.scored_candidate import ScoredCandidate, format_list_line
from newton.cognition.request import MAX_CONTEXT_TOKENS
from newton.cognition.scoring.score import compute_contributions
from newton.content.profiles import ItemOrder, Profile
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import WorkingSession
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryItem:
    """A memory of the working memory. `detail` is null if it was left out of the context; `reason` says why.

    `parts` are what each feature contributes to the score.
    """

    memory_id: UUID
    kind: str
    detail: str | None
    score: float
    parts: Mapping[str, float]
    tokens: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryContext:
    """A context built from the working memory: of all its items, `item_count` are in the text, best first.

    `combine` says whether the parts of a score are summed or multiplied. `items` and `omitted` are the memories in the
    text and those left out, if the reasons are wanted.
    """

    profile: str
    text: str
    tokens: int
    limit: int
    item_count: int
    omitted_count: int
    combine: Literal["sum", "product"]
    items: Sequence[WorkingMemoryItem] = ()
    omitted: Sequence[WorkingMemoryItem] = ()


def _to_item(candidate: ScoredCandidate, profile: Profile) -> WorkingMemoryItem:
    parts = compute_contributions(candidate.scored.features, profile)
    return WorkingMemoryItem(
        memory_id=candidate.memory_id,
        kind=candidate.kind,
        detail=candidate.detail,
        score=round(candidate.score, 6),
        parts={name: round(part, 6) for name, part in parts.items()},
        tokens=candidate.tokens,
        text=format_list_line(candidate.scored.found, candidate.text),
        reason=candidate.reason,
    )


def _format_context(context: WorkingMemoryContext) -> str:
    known = context.item_count + context.omitted_count
    if not known:
        return "The working memory is empty."
    text = context.text
    if items := (*context.items, *context.omitted):
        text = "".join(line for item in items for line in _list_reasons(item, context.combine))
    counts = f"{context.item_count} of {known} items, {context.tokens:,} of {context.limit:,} tokens"
    return f"{text}\n{context.profile}: {counts}"


def _list_reasons(item: WorkingMemoryItem, combine: str) -> Iterator[str]:
    score = (" × " if combine == "product" else " + ").join(f"{name} {part:.4g}" for name, part in item.parts.items())
    verdict = f"selected, as {item.detail}" if item.detail else "left out"
    yield f"{item.score:.4f}  {item.text}\n"
    yield f"        {short_id(item.memory_id)} {verdict} ({item.reason}): {score}\n"


def _format_stats(stats: WorkingSetStats) -> str:
    lines = [
        f"{pluralize(stats.items, 'item')}, {stats.tokens:,} of {stats.capacity:,} tokens",
        f"hours since the items were added, quartiles: {_format_hours(stats.hours_since_added)}",
        f"hours since they were last used, quartiles: {_format_hours(stats.hours_since_accessed)}",
    ]
    for one in stats.profiles:
        age = f", mean age {one.total_age_hours / one.items:.2f} hours" if one.items else ""
        lines.append(f"{one.profile:<12}{pluralize(one.contexts, 'context')}, {pluralize(one.items, 'item')}{age}")
    return "\n".join(lines)


def _format_hours(hours: Sequence[float]) -> str:
    return " · ".join(f"{one:,.2f}" for one in hours) or "-"


@operation("GET /v1/working-memory", "reads", command="working-memory show", text=_format_context)
async def create_context(
    caller: "OperationCaller",
    profile: Annotated[
        Name, Field(description="The profile, which ranks the memories, such as recent or important.")
    ] = DEFAULT_STRATEGY,
    *,
    session: WorkingSession = None,
    max_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_CONTEXT_TOKENS,
            description="Maximum tokens of the context. Default: the capacity of the working memory.",
        ),
    ] = None,
    decay_hours: Annotated[
        float | None, Field(gt=0, description="The time constant of the profile's recency decay, in hours.")
    ] = None,
    order: Annotated[ItemOrder | None, Field(description="The order of the memories.")] = None,
    why: Annotated[bool, Field(description="Whether to say of each memory why it is in the context or not.")] = False,
) -> WorkingMemoryContext:
    """Build a context from what a session stored, showed and read (its working memory), without a search.

    Example: newton working-memory --session s --profile important --max-tokens 500
    """
    memory = await caller.newton.working_memory(session)
    context = await memory.create_context(profile, max_tokens, decay_hours=decay_hours, order=order)
    items, omitted = (
        tuple(_to_item(one, context.profile) for one in candidates if why)
        for candidates in (context.items, context.left_out)
    )
    return WorkingMemoryContext(
        profile=context.profile.name,
        text=context.text,
        tokens=context.tokens,
        limit=context.limit,
        item_count=len(context.items),
        omitted_count=len(context.left_out),
        combine="product" if context.profile.combine == "product" and context.profile.expression is None else "sum",
        items=items,
        omitted=omitted,
    )


@operation(
    "GET /v1/working-memory/stats",
    "reads",
    command="working-memory stats",
    text=_format_stats,
    absent={"mcp": "A model does not need this: Newton does it by itself, or a person does it."},
)
async def working_memory_stats(caller: "OperationCaller", *, session: WorkingSession = None) -> WorkingSetStats:
    """Show the age of the memories in the working memory of a session, and the use of each profile.

    Example: newton working-memory stats --session s
    """
    return await (await caller.newton.working_memory(session)).get_stats()
