"""Tools on decisions: preview and calibration."""

from newton.agent import decision_inputs
from newton.agent.loop.tools import ToolResult, preview_fields
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.errors import InputError
from newton.operations.caller import OperationCaller


async def preview(caller: OperationCaller, args: decision_inputs.PreviewDecisionInput) -> ToolResult:
    checked = await caller.decisions.preview(args.to_draft(caller.scope.now()))
    return ToolResult({"blocked": checked.blocks, "quality_parts": checked.quality, **preview_fields(checked)})


async def compute_calibration(caller: OperationCaller, args: decision_inputs.CalibrationInput) -> ToolResult:
    reviewed, category = await caller.decisions.list_reviewed_decisions(), args.category
    categories = sorted({one.category for one in reviewed})
    if category is not None and category not in categories:
        hint = f"Categories with reviewed decisions: {', '.join(categories) or 'none'}."
        raise InputError(f"No reviewed decision has the category {category!r}.", hint=hint)
    return ToolResult(to_json(build_calibration(one for one in reviewed if category in (None, one.category))))
