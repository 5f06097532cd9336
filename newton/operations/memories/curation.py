"""Operations on single memories: confirm, supersede and retract a fact, and set the outcome of an episode."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Timestamp
from newton.brain.drafts import Verdict
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import CitedLine, MemoryRef

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of the state of a memory."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedFact:
    """The confirmed fact. `counted` is false if the same origin has already confirmed it on this day."""

    memory_id: UUID
    counted: bool
    changes: list[StateChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractedFact:
    """The id of the retracted fact, and the states that changed."""

    memory_id: UUID
    changes: list[StateChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersededFact:
    """The ids of the old and the new fact. They are `unsettled` if only a person may replace the old one."""

    memory_id: UUID
    superseded_by: UUID
    status: Literal["superseded", "unsettled"] = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeOutcome:
    """The id of the episode, and its outcome: for a model, the one that it has already."""

    memory_id: UUID
    outcome: Verdict


def _format_changes(changes: list[StateChange]) -> str:
    return "".join(f"\n  {one.event}: {short_id(one.memory_id)} {one.to_state}" for one in changes)


def _format_confirmed(fact: ConfirmedFact) -> str:
    text = "Fact confirmed." if fact.counted else "The fact was confirmed today already; nothing changed."
    return text + _format_changes(fact.changes)


def _format_outcome(episode: EpisodeOutcome) -> str:
    return f"The outcome of {short_id(episode.memory_id)} is {episode.outcome}."


def _format_superseded(fact: SupersededFact) -> str:
    newer = short_id(fact.superseded_by)
    if fact.status == "superseded":
        return f"Superseded by {newer}."
    return f"Both facts stay until a person settles it: `newton conflicts settle {newer} newer`"


async def list_state_changes(caller: "OperationCaller", since: datetime) -> list[StateChange]:
    """Return the state changes that this call made since a time before it."""
    return [
        StateChange(memory_id=one.memory_id, event=one.event, from_state=one.from_state, to_state=one.to_state)
        for one, _ in await caller.curation.list_changes(since)
    ]


@operation(
    "POST /v1/memories/{memory_id}/confirm",
    "changes",
    act="confirm",
    name="confirm",
    command="confirm",
    text=_format_confirmed,
    is_idempotent=True,
)
async def confirm_fact(caller: "OperationCaller", memory_id: MemoryRef, *, line: CitedLine = None) -> ConfirmedFact:
    """Confirm that a fact is true. Confirmed facts rank higher in searches. One confirmation per day counts.

    Three independent confirmations make it a core (established) fact.

    Example: newton confirm 3f9c2a71
    """
    started_at = caller.scope.now()
    found = await caller.curation.resolve(memory_id)
    counted = await caller.curation.confirm(found.hex)
    return ConfirmedFact(memory_id=found, counted=counted, changes=await list_state_changes(caller, started_at))


@operation(
    "POST /v1/memories/{memory_id}/supersede",
    "adds",
    act="displace",
    name="supersede",
    command="supersede",
    text=_format_superseded,
    names_commands=True,
)
async def supersede_fact(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    content: Annotated[CleanText, Field(description="The fact that is true now, as one sentence.")],
    *,
    at: Annotated[Timestamp | None, Field(description="When the new fact became true. Default: now.")] = None,
    line: CitedLine = None,
) -> SupersededFact:
    """Replace a fact that was true until now by a newer one with the same subject and attribute.

    What a person said is replaced only by a person, or with the `line` in which they say so. Otherwise both facts stay,
    as unsettled, until a person settles it.

    Example: newton supersede 3f9c2a71 "Ana lives in Bergen"
    """
    found = await caller.curation.resolve(memory_id)
    if caller.is_contested:
        newer = await caller.curation.contest(found.hex, content, at=at)
        return SupersededFact(memory_id=found, superseded_by=newer, status="unsettled")
    return SupersededFact(memory_id=found, superseded_by=await caller.curation.supersede(found.hex, content, at=at))


@operation(
    "POST /v1/memories/{memory_id}/retract",
    "changes",
    act="end",
    name="retract",
    command="retract",
    text=lambda fact: "Fact retracted." + _format_changes(fact.changes),
)
async def retract_fact(caller: "OperationCaller", memory_id: MemoryRef, *, line: CitedLine = None) -> RetractedFact:
    """Retract a fact that was never true. If it had replaced another fact, that one becomes current again.

    Example: newton retract 3f9c2a71
    """
    started_at = caller.scope.now()
    found = await caller.curation.resolve(memory_id)
    await caller.curation.retract(found.hex)
    return RetractedFact(memory_id=found, changes=await list_state_changes(caller, started_at))


@operation(
    "POST /v1/memories/{memory_id}/outcome",
    "changes",
    act="state",
    command="outcome",
    text=_format_outcome,
    is_idempotent=True,
)
async def set_outcome(
    caller: "OperationCaller",
    memory_id: Annotated[MemoryRef, Field(description="The id of the episode, or at least its last 6 digits.")],
    outcome: Annotated[Verdict, Field(description="How the episode ended: success, partial or failure.")],
) -> EpisodeOutcome:
    """Set the outcome of an episode: whether what was attempted in it succeeded. A person may change the outcome later.

    Example: newton outcome 3f9c2a71 success
    """
    found, outcome = await caller.curation.set_outcome(memory_id, outcome)
    return EpisodeOutcome(memory_id=found, outcome=outcome)
