"""Tools on stored contexts and reports."""

from newton.agent import inputs
from newton.agent.loop.tools import ToolResult
from newton.operations.caller import OperationCaller
from newton.runtime.hint_names import ORIGIN_INTERFACES, rename_advice
from newton.runtime.reports.metrics import metrics_to_json
from newton.runtime.tools.views import BundleInfo


async def report_metrics(caller: OperationCaller, args: inputs.MetricsInput) -> ToolResult:
    report = metrics_to_json(await caller.newton.metrics().report(args.days))
    return ToolResult(rename_advice(report, ORIGIN_INTERFACES.get(caller.origin, "mcp")))


async def list_bundles(caller: OperationCaller, args: inputs.ListBundlesInput) -> ToolResult:
    found = [
        BundleInfo.from_source(one)
        for one in await caller.newton.bundles().list_recent(args.limit, session=args.session)
    ]
    return ToolResult({"items": [one.model_dump(mode="json") for one in found]})


async def explain_bundle(caller: OperationCaller, args: inputs.ExplainInput) -> ToolResult:
    explanation = await caller.newton.bundles().explain(args.bundle)
    if args.item is None:
        return ToolResult(explanation.as_json())
    return ToolResult((explanation.find_fixed_line(args.item) or explanation.find_item(args.item)).as_json())
