"""Operations on censors, which are rules that warn of a text or block it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Name
from newton.heart.censors import (
    DEFAULT_THRESHOLD,
    MAX_THRESHOLD,
    MAX_TRIGGER_CHARACTERS,
    CensorAction,
    CensorChange,
    CensorRule,
    CensorStage,
    CensorSummary,
    MatchMode,
)
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import CensorRef
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

NOT_FOR_MODELS = "A person decides about this; a model may only propose it."


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedCensor:
    """The result of adding a censor. `is_new` is false if the censor is in force already."""

    is_new: bool
    note: Annotated[str, Field(description="What the trigger does not find.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCensor:
    """A censor that matches the text, and whether it blocks or only warns."""

    memory_id: UUID
    blocks: bool
    trigger: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorCheckResult:
    """The matching censors. `unchecked` says why censors that match by meaning were not checked; null if they were."""

    blocked: bool
    matches: list[MatchedCensor]
    unchecked: str | None

    @property
    def exit_status(self) -> int:
        return int(self.blocked)


def _format_censor(censor: CensorSummary) -> str:
    false = f", {pluralize(censor.false_positives, 'false positive')}" if censor.false_positives else ""
    state = "PROPOSED" if censor.is_proposed else censor.state
    domain = f"{censor.domain}; " if censor.domain else ""
    record = f"({domain}{pluralize(censor.activations, 'match', 'matches')}{false})"
    action = "block" if censor.state == "ESCALATED" else censor.action
    return f"{short_id(censor.memory_id)}  {state:<9} {action:<5} {censor.trigger} — {censor.reason} {record}"


def _format_check(check: CensorCheckResult) -> str:
    lines = [
        f"{short_id(one.memory_id)}  {'block' if one.blocks else 'warn':<5} {one.trigger} — {one.reason}"
        for one in check.matches
    ] or ["No censor matches."]
    if check.unchecked:
        lines.append(f"(Censors that match by meaning were not checked, because: {check.unchecked})")
    return "\n".join(lines)


def _format_added(added: AddedCensor) -> str:
    text = "Censor added." if added.is_new else "The censor is active already; nothing changed."
    return f"{text}\nNote: {added.note}"


@operation(
    "GET /v1/censors",
    "reads",
    name="censors",
    command="censors list",
    text=_format_censor,
    empty='No censors yet. Add one: `newton censors add "push to main" --reason "releases go through review"`',
)
async def list_censors(caller: "OperationCaller") -> ItemList[CensorSummary]:
    """List the censors (prohibitions) and how often each matched. Retired censors come last.

    Example: newton censors list
    """
    return ItemList(items=await caller.censors.list_censors())


@operation("POST /v1/censors", "adds", act="rule", command="censors add", text=_format_added, is_idempotent=True)
async def add_censor(
    caller: "OperationCaller",
    trigger: Annotated[
        CleanText,
        Field(
            max_length=MAX_TRIGGER_CHARACTERS,
            description="Phrase, RE2 regular expression, or description of what is forbidden.",
        ),
    ],
    *,
    reason: Annotated[CleanText, Field(description="Why the trigger is forbidden.")],
    match_mode: Annotated[
        MatchMode, Field(description="Match the trigger as a phrase, as a regular expression (pattern), or by meaning.")
    ] = "phrase",
    action: Annotated[CensorAction, Field(description="Action on a match: warn or block.")] = "warn",
    domain: Annotated[
        Name | None,
        Field(
            description="Domain of frames, such as architecture; other contexts show the censor only on a match."
            " Default: all."
        ),
    ] = None,
    threshold: Annotated[
        int, Field(ge=1, le=MAX_THRESHOLD, description="Number of matches after which a warning becomes a block.")
    ] = DEFAULT_THRESHOLD,
) -> AddedCensor:
    """Add a censor, a prohibition with its reason. A warning is shown to the model; a block stops the turn.

    A censor that a model adds takes effect when a person approves it. If the same censor is in force already, a person
    can make it block.

    Example: newton censors add "push to main" --reason "releases go through review" --action block
    """
    rule = CensorRule(
        trigger=trigger, reason=reason, match_mode=match_mode, action=action, domain=domain, threshold=threshold
    )
    return AddedCensor(is_new=await caller.censors.add(rule), note=rule.describe_limits())


@operation(
    "POST /v1/censors/check",
    "reads",
    command="censors check",
    scope="write",
    text=_format_check,
    absent={"mcp": "Each tool that stores something checks its input."},
)
async def check_censors(
    caller: "OperationCaller",
    text: Annotated[CleanText, Field(description="Text to check.", examples=["push to main without review"])],
    *,
    stage: Annotated[
        CensorStage, Field(description="Kind of text: an input, an action (tool call) or an output (reply).")
    ] = "action",
    counts: Annotated[
        bool,
        Field(description="Count the matches, because somebody is about to do what the text says. Not for a model."),
    ] = False,
) -> CensorCheckResult:
    """Check a text against the censors (prohibitions). No match is counted, unless the caller says so.

    The exit status of the command is 1 if a censor blocks the text.

    Example: newton censors check "push to main without review"
    """
    counts = counts and (await caller.authorize("report", line=None)).counts
    check = await caller.gate.check(text, stage, dry_run=not counts)
    matches = [
        MatchedCensor(memory_id=one.memory_id, blocks=one.is_blocking, trigger=one.trigger, reason=one.reason)
        for one in check.matches
    ]
    return CensorCheckResult(blocked=check.blocks, matches=matches, unchecked=check.unchecked)


def _says(changed: str, unchanged: str = "") -> Callable[[CensorChange], str]:
    return lambda result: changed if result.changed else f"{unchanged}; nothing changed."


@operation(
    "POST /v1/censors/{censor_id}/approve",
    "changes",
    act="govern",
    command="censors approve",
    scope="admin",
    text=_says("Censor approved.", "The censor needs no approval"),
    absent={"mcp": NOT_FOR_MODELS},
)
async def approve_censor(caller: "OperationCaller", censor_id: CensorRef) -> CensorChange:
    """Approve a censor (a prohibition) that an agent or a model proposed. It is inactive until then.

    Example: newton censors approve 3f9c2a71
    """
    return await caller.censors.approve(censor_id)


async def _list_retired(_: object, *, censor_id: str) -> list[str]:
    return [censor_id]


@operation(
    "POST /v1/censors/{censor_id}/retire",
    "destroys",
    act="end",
    command="censors retire",
    text=_says("Censor retired."),
    list_targets=_list_retired,
)
async def retire_censor(caller: "OperationCaller", censor_id: CensorRef) -> CensorChange:
    """Retire a censor (a prohibition) permanently: it no longer matches any text, and stays in the list.

    A model can only withdraw what it proposed.

    Example: newton censors retire 3f9c2a71
    """
    return await caller.censors.retire(censor_id)


@operation(
    "POST /v1/censors/{censor_id}/false-positive",
    "destroys",
    act="govern",
    name="false_positive",
    command="censors false-positive",
    text=_says("False positive recorded."),
    absent={"mcp": NOT_FOR_MODELS},
)
async def report_false_positive(caller: "OperationCaller", censor_id: CensorRef) -> CensorChange:
    """Report the last match of a censor (a prohibition) as a false positive.

    A censor that became blocking because of many correct matches only warns again if too few of its matches remain
    correct. A censor with too many false positives is retired.

    Example: newton censors false-positive 3f9c2a71
    """
    return await caller.censors.report_false_positive(censor_id)


@operation(
    "POST /v1/censors/{censor_id}/relax",
    "destroys",
    act="govern",
    command="censors relax",
    text=_says("Relaxed: the censor only warns from now on.", "The censor does not block"),
    absent={"mcp": NOT_FOR_MODELS},
)
async def relax_censor(
    caller: "OperationCaller",
    censor_id: CensorRef,
    *,
    reason: Annotated[CleanText, Field(description="Why the censor need not block. The reason is recorded.")],
) -> CensorChange:
    """Make a blocking censor (a prohibition) only warn. Its count of matches starts again at zero.

    Example: newton censors relax 3f9c2a71 --reason "the logs are archived now"
    """
    return await caller.censors.relax(censor_id, reason)
