"""Tools on stored contexts and reports."""

from newton.agent import inputs
from newton.agent.loop.tools import ToolResult
from newton.operations.caller import OperationCaller
from newton.runtime.hint_names import ORIGIN_INTERFACES, rename_advice
from newton.runtime.reports.metrics import metrics_to_json


async def report_metrics(caller: OperationCaller, args: inputs.MetricsInput) -> ToolResult:
    report = metrics_to_json(await caller.newton.metrics().report(args.days))
    return ToolResult(rename_advice(report, ORIGIN_INTERFACES.get(caller.origin, "mcp")))
