"""The tool that builds a context."""

from newton.agent import context_inputs
from newton.agent.loop.tools import ToolResult
from newton.operations.caller import OperationCaller
from newton.runtime.tools.context_request import ContextCall


async def build_context(caller: OperationCaller, args: context_inputs.HostContextInput) -> ToolResult:
    call = ContextCall(
        newton=caller.newton,
        origin=caller.origin,
        item_ids=True,
        requires_session=False,
        deadline=caller.deadline,
    )
    bundle = await call.build(args)
    fields = {
        "bundle_id": str(bundle.bundle_id),
        "frame": bundle.frame_choice.frame,
        "profile": bundle.profile.name,
        "tokens": bundle.tokens,
        "truncated": bundle.is_truncated,
        "nothing_relevant": bundle.has_nothing_relevant,
        "sufficiency": None if bundle.sufficiency is None else round(bundle.sufficiency, 2),
    }
    optional = {
        "truncated": bundle.is_truncated,
        "overrides": bundle.overrides.as_json(),
        "missing": dict(bundle.missing),
        "task": bundle.task_json,
        "left_nothing": dict(bundle.unmatched_filters) if bundle.filters.as_json() else None,
    }
    return ToolResult({**fields, "text": bundle.text, **{name: value for name, value in optional.items() if value}})
