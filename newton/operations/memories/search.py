"""The operation that searches the memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Timestamp
from newton.cognition.assembly.fact_labels import render_found
from newton.cognition.assembly.relevance_floor import format_probability
from newton.cognition.assembly.scored_candidate import format_list_line
from newton.cognition.assembly.sections import format_missing
from newton.memory.lookup import short_id
from newton.memory.memory import PERSON_TIERS, Kind, Trust
from newton.memory.representations import indent_lines
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, ConversationSession
from newton.operations.results import SelectedFields

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MODEL_FIELDS = ("memory_id", "kind", "trust", "text", "probability")  # those that a model needs
MAX_FOR_MODELS = 30
MAX_RESULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """A found memory and its scores. `evidence` is 0 for no match and about 1 for a clear match.

    `relevance` is `evidence` divided by that of the best result, `cosine` the similarity of meaning, `lexical` that of
    the words. `probability` is that of answering the query; null if it cannot be estimated. `is_inherited` is true if
    it is of the agent above the project in use.
    """

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    evidence: float
    relevance: float
    cosine: float
    lexical: float
    probability: float | None
    occurred_at: datetime
    trust: Trust
    ref: str | None
    quarantined: Annotated[bool, Field(exclude=True)] = False
    is_inherited: bool = False


class RecalledMemories(SelectedFields):
    """The found memories, best first. `missing` names the kinds of search that were unavailable, and why.

    `has_match` is false if all are only the nearest ones. `note` says that nothing known answers, and what to try.
    """

    items: list[RecalledMemory]
    has_match: bool
    missing: Mapping[str, str]
    note: str | None


def _to_found(found: RetrievedMemory, result: RecallResult, now: datetime) -> RecalledMemory:
    return RecalledMemory(
        memory_id=found.memory_id,
        kind=found.kind,
        state=found.state,
        text=render_found(found, format_list_line(found, found.summary), now),
        evidence=round(found.evidence_score, 6),
        relevance=round(found.relevance, 6),
        cosine=round(found.similarity, 6),
        lexical=round(found.lexical, 6),
        probability=result.find_probability(found.memory_id),
        occurred_at=found.occurred_at,
        trust=found.trust,
        ref=found.ref,
        quarantined=found.quarantined,
        is_inherited=found.is_inherited,
    )


def _format_found(found: RecalledMemories) -> str:
    if not found.items:
        nearest = "Nothing known answers this. To see the nearest memories, add `--min-relevance 0`."
        return nearest if found.note else "No matching memory."
    lines = [] if found.has_match else ["Nothing matches well; these are the nearest memories."]
    for one in found.items:
        shown = "-" if one.probability is None else format_probability(one.probability)
        columns = f"{short_id(one.memory_id)}  {shown:>5}  {one.kind:<9}  "
        lines.append(columns + indent_lines(one.text, " " * len(columns)))
    return "\n".join(lines)


@operation(
    "POST /v1/recall",
    "reads",
    command="recall",
    text=_format_found,
    notices=lambda found: format_missing(found.missing),
    searches=True,
    core=("query", "limit", "kinds", "session"),
)
async def recall(
    caller: "OperationCaller",
    query: Annotated[CleanText, Field(description="The question or topic, in plain words.")],
    *,
    limit: Annotated[
        int, Field(ge=1, le=MAX_RESULTS, description=f"Maximum number of results, for a model {MAX_FOR_MODELS}.")
    ] = 10,
    kinds: Annotated[
        tuple[Kind, ...] | None,
        CommandOption("kind"),
        Field(
            min_length=1,
            description="Search only memories of these kinds. `event` includes the results of tools, which are data"
            " only.",
        ),
    ] = None,
    min_relevance: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Minimum probability that a message, fact or passage answers the query; 0 for the nearest"
            " memories whatever they say. Default: the minimum for a context.",
        ),
    ] = None,
    include_quarantined: Annotated[
        bool,
        Field(
            description="Include quarantined memories, such as output of tools and text from the web. Without it, only"
            " the quarantined replies of `session` are found."
        ),
    ] = False,
    as_of: Annotated[Timestamp | None, Field(description="Search the memory as it was at this time.")] = None,
    session: ConversationSession = None,
) -> RecalledMemories:
    """Search the memory by meaning and by words: conversations, facts, episodes, procedures, documents, decisions.

    Use it for information that is missing in the context. Each result has an id, by which `expand` shows it in full,
    and the probability that it answers. Messages of the `session` are preferred.

    Example: newton recall "Where is the crate?" --limit 5 --session s
    """
    is_person = caller.trust in PERSON_TIERS
    toolset = await caller.toolset_in(session, creates=False)
    memories = toolset.memories.with_min_relevance(min_relevance)
    result = await memories.recall(
        query,
        kinds=kinds,
        limit=limit if is_person else min(limit, MAX_FOR_MODELS),
        include_quarantined=include_quarantined,
        as_of=as_of,
        session_id=toolset.session_id,
    )
    if as_of is None:
        await toolset.session_use.record([found.memory_id for found in result.memories])
    now = caller.scope.now()
    return RecalledMemories(
        items=[_to_found(found, result, now) for found in result.memories],
        has_match=result.has_match,
        missing=dict(result.missing),
        note=memories.describe_nothing(result),
        selected=() if is_person else MODEL_FIELDS,
    )
