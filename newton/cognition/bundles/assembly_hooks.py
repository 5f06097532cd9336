"""The hooks of a pack before and after the assembly of a context, and the effects of the former on its request."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from newton.brain.pack_hooks import HookResult, HookRunner
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest


async def run_before_assembly(hooks: HookRunner, request: ContextBuildRequest) -> tuple[HookResult, ...]:
    """Run the hooks that see the input, and the frame if the caller names one."""
    if not hooks.hooks:
        return ()
    return await hooks.run("before_assembly", {"input": request.input, "frame": request.frame or ""})


def apply_hook_effects(
    request: ContextBuildRequest, results: Sequence[HookResult], frames: Collection[str]
) -> ContextBuildRequest:
    """Return the request with the lines of the hooks, and with the frame of the first that names a known one.

    The caller's own frame stays.
    """
    lines = [line for result in results for line in result.effect.lines]
    named = [result.effect.frame for result in results if result.effect.frame in frames]
    additional = "\n".join(filter(None, (request.additional, *lines)))
    return replace(
        request,
        additional=additional or None,
        frame=request.frame or (named[0] if named else None),
    )


async def run_after_assembly(hooks: HookRunner, bundle: Bundle) -> tuple[HookResult, ...]:
    """Run the hooks that see the finished context."""
    if not hooks.hooks:
        return ()
    values = {
        "input": bundle.input,
        "frame": bundle.frame_choice.frame,
        "context": bundle.text,
        "tokens": bundle.tokens,
        "items": len(bundle.items),
    }
    return await hooks.run("after_assembly", values)
