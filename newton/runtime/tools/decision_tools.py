"""Tools on decisions: preview, thoughts, lists, outcomes, calibration and guardrails."""

from newton.agent import decision_inputs, inputs
from newton.agent.loop.tools import ToolResult, preview_fields
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.brain.queries import DecisionFilter
from newton.errors import InputError
from newton.operations.caller import OperationCaller
from newton.runtime.tools.views import OutcomeInfo, to_decision_info


async def preview(caller: OperationCaller, args: decision_inputs.PreviewDecisionInput) -> ToolResult:
    checked = await caller.decisions.preview(args.to_draft(caller.scope.now()))
    return ToolResult({"blocked": checked.blocks, "quality_parts": checked.quality, **preview_fields(checked)})


async def think(caller: OperationCaller, args: decision_inputs.ThinkInput) -> ToolResult:
    await caller.decisions.add_thought(args.decision_id, args.text)
    return ToolResult({"decision_id": args.decision_id, "recorded": True})


async def mark_done(caller: OperationCaller, args: inputs.DoneInput) -> ToolResult:
    await caller.decisions.mark_done(args.decision_id)
    return ToolResult({"decision_id": args.decision_id, "status": "done"})


async def show_decision(caller: OperationCaller, args: decision_inputs.ShowDecisionInput) -> ToolResult:
    return ToolResult((await caller.decisions.get(args.decision_id)).as_json())


async def list_decisions(caller: OperationCaller, args: decision_inputs.ListDecisionsInput) -> ToolResult:
    found = await caller.decisions.list_decisions(DecisionFilter(**args.model_dump()))
    return ToolResult({"items": [to_decision_info(one).model_dump(mode="json") for one in found]})


async def list_outcomes(caller: OperationCaller, args: decision_inputs.ListOutcomesInput) -> ToolResult:
    found = await caller.decisions.list_outcomes(**args.model_dump())
    return ToolResult({"items": [OutcomeInfo.from_source(one).model_dump(mode="json") for one in found]})


async def compute_calibration(caller: OperationCaller, args: decision_inputs.CalibrationInput) -> ToolResult:
    reviewed, category = await caller.decisions.list_reviewed_decisions(), args.category
    categories = sorted({one.category for one in reviewed})
    if category is not None and category not in categories:
        hint = f"Categories with reviewed decisions: {', '.join(categories) or 'none'}."
        raise InputError(f"No reviewed decision has the category {category!r}.", hint=hint)
    return ToolResult(to_json(build_calibration(one for one in reviewed if category in (None, one.category))))
