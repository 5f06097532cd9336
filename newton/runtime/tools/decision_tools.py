"""Tools on decisions: preview."""

from newton.agent import decision_inputs
from newton.agent.loop.tools import ToolResult, preview_fields
from newton.operations.caller import OperationCaller


async def preview(caller: OperationCaller, args: decision_inputs.PreviewDecisionInput) -> ToolResult:
    checked = await caller.decisions.preview(args.to_draft(caller.scope.now()))
    return ToolResult({"blocked": checked.blocks, "quality_parts": checked.quality, **preview_fields(checked)})
