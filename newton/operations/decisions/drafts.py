"""Operations on decisions before they are carried out: check one, and record it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

from pydantic import Field

from newton.agent.decision_inputs import ReasonInput
from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.services.decisions import CheckedDraft
from newton.brain.decision_codec import MAX_ITEMS, validate_draft
from newton.brain.drafts import (
    DecisionDraft,
    DecisionPreview,
    DecisionReason,
    GuardrailCheck,
    GuardrailResult,
    RecordedDecision,
    Stakes,
)
from newton.content.frames import get_frame
from newton.operations.decisions.formats import format_check, format_recorded
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, ConversationSession, DecisionRef

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

VERDICT_LABELS = {"passed": "passed", "warned": "WARNED", "blocked": "BLOCKED", "not_evaluated": "BLOCKED"}
Description = Annotated[CleanText, Field(description="The decision, in one sentence.")]
Confidence = Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False, description="Probability that the decision succeeds, from 0 to 1.")
]


class DraftFields(TypedDict, total=False):
    """The fields of a decision besides its description and its confidence."""

    stakes: Annotated[
        Stakes | None, Field(description="How much depends on the decision. Default: as its frame says, else medium.")
    ]
    category: Annotated[
        Name | None,
        Field(description="The kind of decision, e.g. architecture. Default: as its frame says, else process."),
    ]
    reasons: Annotated[
        tuple[ReasonInput, ...] | None,
        CommandOption("reason"),
        Field(
            max_length=MAX_ITEMS,
            description="The reasons, each with its kind; as text KIND:TEXT. Reasons of different kinds raise the"
            " decision's quality score.",
            examples=[[{"kind": "analysis", "text": "reads outnumber writes"}]],
        ),
    ]
    alternatives: Annotated[
        tuple[CleanText, ...] | None,
        CommandOption("alternative"),
        Field(max_length=MAX_ITEMS, description="The other options considered."),
    ]
    expected: Annotated[CleanText | None, Field(description="The expected result.")]
    context: Annotated[CleanText | None, Field(description="The situation in which the decision is made.")]
    tags: Annotated[
        tuple[Name, ...] | None, CommandOption("tag"), Field(max_length=MAX_ITEMS, description="Words to find it by.")
    ]
    look_again_at: Annotated[
        Timestamp | None,
        CommandOption("review-due"),
        Field(description="The review date: when the outcome of the decision should be known."),
    ]
    reviewed_by: Annotated[Name | None, Field(description="Who reviewed the decision before it was made.")]
    frame: Annotated[Name | None, Field(description="The frame that sets the default stakes and category.")]
    ref: Annotated[
        Ref | None, Field(description="An id of your own. A second decision with the same `ref` is not recorded.")
    ]


def _to_draft(caller: "OperationCaller", description: str, confidence: float, given: DraftFields) -> DecisionDraft:
    """Return a decision; its frame gives the stakes and the category that are not given.

    Raises NotFoundError for an unknown frame.
    """
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    fields["reasons"] = tuple(DecisionReason(one.kind, one.text) for one in given.get("reasons") or ())
    if name := given.get("frame"):
        frame = get_frame(caller.newton.frames, name)
        fields = {"stakes": frame.default_stakes, "category": frame.category, **fields, "frame": frame.name}
    return DecisionDraft(description=description, confidence=confidence, at=caller.scope.now(), **fields)


def _format_result(result: GuardrailResult) -> str:
    return f"{VERDICT_LABELS[result.verdict]:<8}{result.message or result.name}"


def _format_guardrails(check: GuardrailCheck) -> str:
    return "\n".join(map(_format_result, check.guardrails)) or "No guardrails."


@operation("POST /v1/decisions/preview", "reads", name="preview", command="decisions preview", text=format_check)
async def preview_decision(
    caller: "OperationCaller", description: Description, *, confidence: Confidence, **fields: Unpack[DraftFields]
) -> DecisionPreview:
    """Check a decision without recording it: similar decisions, the success rate of its category, and its quality.

    The censors (prohibitions) and guardrails (rules for decisions) that match are listed too. The exit status of the
    command is 1 if one of them blocks the decision.

    Example: newton decisions preview "Send the crate by rail" --confidence 0.7 --reason "analysis:it is heavy"
    """
    return await caller.decisions.preview(_to_draft(caller, description, confidence, fields))


@operation(
    "POST /v1/guardrails/check",
    "reads",
    command="guard check",
    text=_format_guardrails,
    absent={"mcp": "`preview` does it.", "chat": "`/preview` does it."},
)
async def check_guardrails(
    caller: "OperationCaller",
    description: Description = "a decision",
    *,
    confidence: Confidence,
    **fields: Unpack[DraftFields],
) -> GuardrailCheck:
    """Check a decision against the guardrails, without recording it. The exit status of the command is 1 if one blocks.

    Example: newton guard check "Drop the old table" --stakes high --confidence 0.4 --reason analysis:unused
    """
    draft = validate_draft(_to_draft(caller, description, confidence, fields))
    return GuardrailCheck(guardrails=(await caller.decisions.check_guardrails(draft))[1])


async def _list_superseded(_: object, *, supersedes: Sequence[str], **__: object) -> Sequence[str]:
    return supersedes


async def _evaluate(
    caller: "OperationCaller", *, description: str, confidence: float, supersedes: object, session: object, **given: Any
) -> CheckedDraft:
    return await caller.decisions.evaluate(_to_draft(caller, description, confidence, DraftFields(**given)))


@operation(
    "POST /v1/decisions",
    "adds",
    act="displace",
    name="decide",
    command="decide",
    text=format_recorded,
    core=(
        *("description", "confidence", "reasons", "alternatives", "expected", "context"),
        *("stakes", "category", "supersedes", "look_again_at", "session"),
    ),
    prepare=_evaluate,
    list_targets=_list_superseded,
)
async def record_decision(
    caller: "OperationCaller",
    checked: CheckedDraft,
    description: Description,
    *,
    confidence: Confidence,
    supersedes: Annotated[
        Sequence[DecisionRef],
        Field(max_length=20, description="The ids of the earlier decisions that the new decision replaces."),
    ] = (),
    session: ConversationSession = None,
    **fields: Unpack[DraftFields],
) -> RecordedDecision:
    """Record a decision before you act on it. If a guardrail or a censor blocks it, nothing is recorded.

    The result lists similar decisions with their outcomes.

    Example: newton decide "Send the crate by rail" --confidence 0.7 --reason "analysis:it is heavy" --session s
    """
    recorded = await caller.decisions.record(checked, supersedes=supersedes)
    await (await caller.toolset_in(session, creates=True)).session_use.record([recorded.decision_id])
    return recorded
