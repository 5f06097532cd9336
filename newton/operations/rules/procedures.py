"""Operations on procedures, which say how something is done, in steps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from newton.agent.field_types import CleanText, Name
from newton.heart.procedures import ProcedureChange, ProcedureSummary, ProcedureVersion
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

UseResult = Literal["success", "failure", "neutral"]
ProcedureName = Annotated[Name, Field(description="The name of the procedure.", examples=["debugging"])]
NOTED = "Noted. It does not count, because a person put the procedure in use."
OutcomeOfUse = Annotated[UseResult, Field(description="How the use of the procedure ended.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureUse:
    """The recorded use of the procedure, and its result; null if that is not known.

    `counts` is false for what a model says of a procedure that a person put in use.
    """

    name: str
    result: UseResult | None
    counts: bool = True


def _format_summary(procedure: ProcedureSummary) -> str:
    record, uses = "no record", procedure.successes + procedure.failures
    if uses:
        rates = procedure.success_rate, procedure.success_rate_lower_bound
        record = f"{rates[0]:.0%} of {uses} succeeded, lower bound {rates[1]:.0%}"
    waiting = ", proposed" if procedure.is_proposed else ""
    name = f"{procedure.name} v{procedure.version} ({procedure.domain}{waiting})"
    return f"{short_id(procedure.memory_id)}  {procedure.state:<11} {name} · {record}\n{'':10}{procedure.description}"


def _format_version(procedure: ProcedureVersion) -> str:
    lines = [_format_summary(procedure), *(f"  goal   {goal}" for goal in procedure.goals)]
    lines += [f"  {position:>4}.  {step}" for position, step in enumerate(procedure.steps, 1)]
    return "\n".join([*lines, *(["", procedure.details.strip()] if procedure.details.strip() else [])])


@operation(
    "GET /v1/procedures",
    "reads",
    name="procedures",
    command="procedures list",
    text=_format_summary,
    empty="No procedures.",
)
async def list_procedures(
    caller: "OperationCaller", *, versions: Annotated[bool, Field(description="Also list earlier versions.")] = False
) -> ItemList[ProcedureSummary]:
    """List the procedures (how something is done, in steps) with their track records.

    A track record is the success rate of the evaluated uses and its lower bound (Wilson score, 95 %).

    Example: newton procedures list
    """
    found = await caller.procedures.list_procedures()
    return ItemList(items=found if versions else list({one.name: one for one in found}.values()))


@operation("GET /v1/procedures/{name}", "reads", name="procedure", command="procedures show", text=_format_version)
async def show_procedure(caller: "OperationCaller", name: ProcedureName) -> ProcedureVersion:
    """Show the goals, steps and details of a procedure, with its track record.

    Example: newton procedures show debugging
    """
    return await caller.procedures.get(name)


def _format_approved(change: ProcedureChange) -> str:
    return f"Approved {change.name}." if change.changed else f"{change.name} was not waiting for approval."


@operation(
    "POST /v1/procedures/{name}/approve",
    "changes",
    act="govern",
    command="procedures approve",
    scope="admin",
    text=_format_approved,
    absent={"mcp": "A person decides about this; a model may only propose it."},
)
async def approve_procedure(caller: "OperationCaller", name: ProcedureName) -> ProcedureChange:
    """Approve a procedure that follows from what the agent did. It is in no context before.

    Example: newton procedures approve debugging
    """
    return await caller.procedures.approve(name)


def _format_dismissed(change: ProcedureChange) -> str:
    return f"Dismissed {change.name}." if change.changed else f"{change.name} was not waiting for approval."


async def _list_version(caller: "OperationCaller", name: str, **_: object) -> list[str]:
    return [(await caller.procedures.get(name)).memory_id.hex]


@operation(
    "POST /v1/procedures/{name}/dismiss",
    "destroys",
    act="end",
    command="procedures dismiss",
    text=_format_dismissed,
    list_targets=_list_version,
)
async def dismiss_procedure(
    caller: "OperationCaller",
    name: ProcedureName,
    *,
    reason: Annotated[CleanText | None, Field(description="Why it is not wanted. The reason is recorded.")] = None,
) -> ProcedureChange:
    """Dismiss a procedure that waits for approval, when the person says so. It is not proposed again.

    Example: newton procedures dismiss debugging --reason "the path was a mistake of mine"
    """
    return await caller.procedures.dismiss(name, reason)


@operation(
    "POST /v1/procedures/{name}/outcomes",
    "adds",
    act="report",
    name="procedure_outcome",
    command="procedures record-outcome",
    text=lambda use: "Outcome recorded." if use.counts else NOTED,
    list_targets=_list_version,
)
async def record_procedure_outcome(
    caller: "OperationCaller", name: ProcedureName, result: OutcomeOfUse
) -> ProcedureUse:
    """Record how the last use of a procedure ended. If no use without an outcome is recorded, this counts as a use.

    From five uses on, the success rate decides whether the procedure stays in use. What a model reports counts only
    for a procedure that waits for approval.

    Example: newton procedures record-outcome debugging failure
    """
    record = caller.procedures.record_result if caller.counts else caller.procedures.report
    await record(name, result)
    return ProcedureUse(name=name, result=result, counts=caller.counts)


@operation(
    "POST /v1/procedures/{name}/uses",
    "adds",
    act="report",
    name="procedure_use",
    command="procedures record-use",
    text=lambda use: "One use of the procedure is recorded." if use.counts else NOTED,
    list_targets=_list_version,
    absent={"mcp": "`procedure_outcome` counts a use as well."},
)
async def record_procedure_use(
    caller: "OperationCaller",
    name: ProcedureName,
    *,
    result: Annotated[UseResult | None, Field(description="How the use ended, if that is known.")] = None,
) -> ProcedureUse:
    """Record a use of a procedure and its outcome. From five uses on, the success rate decides the procedure's state.

    Example: newton procedures record-use debugging --result success
    """
    record = caller.procedures.record_use if caller.counts else caller.procedures.report
    await record(name, result)
    return ProcedureUse(name=name, result=result, counts=caller.counts)
