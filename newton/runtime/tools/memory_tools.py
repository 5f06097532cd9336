"""Tools on memories: contexts, lists, deletion, changes of facts, entities, and the working memory."""

from newton.agent import context_inputs, inputs
from newton.agent.loop.tools import ToolResult
from newton.agent.memory_inputs import ListMemoriesInput
from newton.memory.lookup import short_id
from newton.operations.caller import OperationCaller
from newton.runtime.tools.context_request import ContextCall
from newton.runtime.tools.memory_views import MemoryField
from newton.runtime.tools.memory_views import list_memories as build_list
from newton.runtime.tools.views import ForgetPlanResponse
from newton.runtime.tools.working_memory import build_working_context

# The fields of a listed memory that a model needs.
TOOL_FIELDS: tuple[MemoryField, ...] = (
    *("memory_id", "kind", "state", "quarantined", "text", "subject", "importance", "trust", "occurred_at"),
)


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


async def list_memories(caller: OperationCaller, args: ListMemoriesInput) -> ToolResult:
    page = await build_list(caller.newton, caller.origin, args, fields=TOOL_FIELDS)
    items = [
        {
            "memory_id": short_id(one.memory_id) if one.memory_id else None,
            **one.model_dump(mode="json", exclude={"memory_id"}, exclude_unset=True, exclude_none=True),
        }
        for one in page.items
    ]
    return ToolResult({"items": items, "next": page.next, "count": page.count})


async def forget(caller: OperationCaller, args: inputs.ForgetInput) -> ToolResult:
    """Return the memories to delete and the token that confirms it or, if the call has this token, delete them."""
    if args.token is None:
        plan, token = await caller.curation.plan_forget(args.memory_id)
        response = ForgetPlanResponse(
            memory_id=short_id(plan.memory.memory_id),
            kind=plan.memory.kind,
            text=plan.memory.summary,
            derived=[f"{kind} {short_id(memory_id)}: {micro}" for memory_id, kind, micro in plan.derived],
            sources=[f"{one.kind} {short_id(one.other_id)}: {one.micro}" for one in plan.memory.sources],
            token=token,
            next_step="Nothing is deleted yet. Call `forget` again with this token to delete it permanently.",
        )
        return ToolResult(response.model_dump(mode="json"))
    deleted = await caller.curation.forget_confirmed(
        args.memory_id, token=args.token, include_derived=args.include_derived, reason=args.reason
    )
    return ToolResult({"items": [short_id(memory_id) for memory_id in deleted]})


async def show_working_memory(caller: OperationCaller, args: context_inputs.WorkingMemoryInput) -> ToolResult:
    context = await build_working_context(caller.newton, args)
    return ToolResult(context.model_dump(mode="json", exclude={"items", "omitted"}))
