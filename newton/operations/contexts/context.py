"""The operation that builds the context for an input."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from pydantic import Field

from newton.client.context import ContextResponse
from newton.cognition.assembly.sections import format_missing
from newton.cognition.bundles.bundle import Bundle
from newton.deadline import RequestDeadline
from newton.memory.memory import PERSON_TIERS, Trust
from newton.operations.contexts.context_request import ContextCall, ContextInput
from newton.operations.contexts.context_text import (
    format_context_line,
    format_hidden_lines,
    format_unknown_times,
)
from newton.operations.declaration import EACH_FIELD, operation

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContext:
    """A context as a model gets it. A field that says nothing is null."""

    bundle_id: UUID
    frame: str
    profile: str
    tokens: int
    truncated: bool
    nothing_relevant: bool
    sufficiency: float | None
    overrides: dict[str, Any] | None
    missing: dict[str, str] | None
    task: dict[str, Any] | None
    left_nothing: dict[str, list[str]] | None
    text: str
    foreign_trust: Annotated[Trust | None, Field(exclude=True)] = None
    passages: Annotated[tuple[str, ...], Field(exclude=True)] = ()


def _to_model_context(bundle: Bundle) -> ModelContext:
    return ModelContext(
        bundle_id=bundle.bundle_id,
        frame=bundle.frame_choice.frame,
        profile=bundle.profile.name,
        tokens=bundle.tokens,
        truncated=bundle.is_truncated,
        nothing_relevant=bundle.has_nothing_relevant,
        sufficiency=None if bundle.sufficiency is None else round(bundle.sufficiency, 2),
        overrides=bundle.overrides.as_json() or None,
        missing=dict(bundle.missing) or None,
        task=bundle.task_json,
        left_nothing=dict(bundle.unmatched_filters) or None,
        text=bundle.text,
        foreign_trust=bundle.min_external_trust,
        passages=tuple(c.text for c in bundle.items if c.kind == "passage"),
    )


def _format_text(context: ContextResponse) -> str:
    return context["text"].removesuffix("\n")


def _list_notices(context: ContextResponse) -> Iterator[str]:
    yield from format_missing(context["missing"])
    yield from format_hidden_lines(len(context["identity"]["unshown"]), budget=context["budget"])
    if context["nothing_relevant"]:
        too_small = f"(No memory fits into {context['budget']} tokens.)"
        yield too_small if context["truncated"] else "(No relevant memory was found.)"
    if filters := [_format_filter(name, values) for name, values in context.get("left_nothing", {}).items()]:
        yield f"(No memory matches these filters: {'; '.join(filters)})"
    yield from format_unknown_times(context["times"]["asked"] if context["times"]["blank"] else ())
    line = format_context_line(
        context["frame"],
        context["profile"]["name"],
        f"{context['tokens']} of {context['budget']} tokens",
        best=max((one["evidence"] for one in context["items"]), default=None),
        sufficiency=context["sufficiency"],
        has_nothing_relevant=context["nothing_relevant"],
    )
    yield f"\n{line}"


def _format_filter(name: str, values: list[str]) -> str:
    if name in ("since", "until"):
        values = [f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M}" for value in values]
    return f"{name} {', '.join(values)}"


@operation(
    "POST /v1/context",
    "reads",
    name="context",
    command="context",
    text=_format_text,
    notices=_list_notices,
    searches=True,
    core=("input", "session", "max_tokens"),
    absent={"chat": "`/context` shows the context of the last answer."},
)
async def build_context(
    caller: "OperationCaller",
    query: Annotated[ContextInput, EACH_FIELD],
    *,
    allow_partial: Annotated[
        bool,
        Field(
            description="Return at the deadline what was found by then, with a line in the text that names what was not"
            " searched, instead of an error. For a caller that must answer in any case."
        ),
    ] = False,
    item_ids: Annotated[
        bool,
        Field(description="Show in each line of a memory the id that `expand` accepts, as a model always gets it."),
    ] = False,
) -> ContextResponse | ModelContext:
    """Build the context for an input: the relevant memories, selected and ordered within a token budget.

    The constraints come first. Call it before you answer or begin work, and name the conversation to which the input
    belongs. The context is stored as a bundle; the input does not become a memory. A source that failed is named in
    `missing` and in a line of the text.

    Example: newton context "Where is the crate?" --kind fact --kind exchange --override weights.recency=0.4
    """
    is_person = caller.trust in PERSON_TIERS
    deadline = caller.deadline or RequestDeadline.after()
    call = ContextCall(
        caller=caller,
        item_ids=item_ids or not is_person,
        requires_session=is_person,
        deadline=deadline.accept_partial() if allow_partial else deadline,
    )
    bundle = await call.build(query)
    return bundle.as_json() if is_person else _to_model_context(bundle)
