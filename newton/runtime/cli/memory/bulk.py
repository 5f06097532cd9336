"""Commands `newton bulk`: changes of all memories that a filter selects."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.inventory.bulk_changes import BulkPlan
from newton.agent.memory_inputs import BulkAction, BulkChangeInput
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.memory.filter_options import NO_FILTER, FilterOptions, parse_options
from newton.runtime.cli.options import PERSON, AgentOption, JsonOption, ReasonOption, ask_to_confirm, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.memory_views import to_bulk_result

MAX_SHOWN, MAX_SHOWN_CHARS = 5, 90  # memories of a preview, and characters of each
ConfirmOption = Annotated[
    str | None,
    Parameter(
        "--confirm", help="Code that the preview printed: change exactly the previewed memories, without asking."
    ),
]
QUESTIONS: dict[BulkAction, str] = {
    "forget": "Permanently delete {many}?",
    "retract": "Retract {many}?",
    "set_importance": "Set the importance of {many}?",
    "set_core": "Mark {many} as core, or remove the mark?",
}
RESULTS: dict[BulkAction, str] = {
    "forget": "Forgotten: {many}.",
    "retract": "Retracted: {many}.",
    "set_importance": "Importance set: {many}.",
    "set_core": "Core mark changed: {many}.",
}


async def forget_memories(
    *,
    select: FilterOptions = NO_FILTER,
    include_derived: Annotated[
        bool, Parameter(negative=(), help="Also delete memories derived from the selected ones.")
    ] = False,
    reason: ReasonOption = "requested",
    confirm: ConfirmOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Permanently delete all memories that the filters select, at most 1,000. Only ids, time and reason are kept.

    In a terminal, the command shows what it would delete and asks. Otherwise the first call prints a code, and nothing
    is deleted until the command is repeated with --confirm CODE.

    Example: newton bulk forget --kind fact --subject Ana
    """
    fields: dict[str, object] = {"include_derived": include_derived, "reason": reason}
    await _change("forget", select, fields, confirm=confirm, agent=agent, json=json)


async def retract_facts(
    *,
    select: FilterOptions = NO_FILTER,
    confirm: ConfirmOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Mark all facts that the filters select as never true. Facts that they superseded become current again.

    Example: newton bulk retract --kind fact --session "draft talk"
    """
    await _change("retract", select, {}, confirm=confirm, agent=agent, json=json)


async def set_importance(
    importance: Annotated[
        float | None,
        Parameter(help="Importance from 0 to 10; if omitted, it is computed from confirmations and use again."),
    ] = None,
    /,
    *,
    select: FilterOptions = NO_FILTER,
    confirm: ConfirmOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Set the importance of all memories that the filters select.

    Example: newton bulk importance 8 --kind fact --subject "the staging server"
    """
    await _change("set_importance", select, {"importance": importance}, confirm=confirm, agent=agent, json=json)


async def set_core(
    *,
    select: FilterOptions = NO_FILTER,
    remove: Annotated[bool, Parameter(negative=(), help="Remove the core mark instead of setting it.")] = False,
    confirm: ConfirmOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Mark all facts that the filters select as core (established), or remove the mark.

    Example: newton bulk core --kind fact --text "allergy"
    """
    await _change("set_core", select, {"core": not remove}, confirm=confirm, agent=agent, json=json)


async def _change(
    action: BulkAction,
    select: FilterOptions,
    fields: dict[str, object],
    *,
    confirm: str | None,
    agent: str | None,
    json: bool,
) -> None:
    change = parse_options(
        BulkChangeInput, {"action": action, "filter": select.to_filter(), **fields, "token": confirm}
    )
    async with open_agent(load_settings(agent)) as newton:
        service = newton.bulk("cli", PERSON)
        if confirm is None:
            plan = await service.plan(change)
            if json or not plan.memories or not current_terminal().asks():
                _print_preview(plan, json=json)
                return
            say(_format_preview(plan))
            ask_to_confirm(QUESTIONS[action].format(many=_count(plan)))
            change = change.model_copy(update={"token": plan.token})
        plan = await service.carry_out(change)
    if json:
        formatting.print_json(to_bulk_result(plan, is_done=True).model_dump(mode="json"))
    else:
        say(RESULTS[action].format(many=_count(plan)))


def _print_preview(plan: BulkPlan, *, json: bool) -> None:
    if json:
        formatting.print_json(to_bulk_result(plan, is_done=False).model_dump(mode="json"))
        return
    if not plan.memories:
        raise InputError(
            "No memory matches these filters.",
            hint="Change the filters; `newton list` accepts the same ones and shows what they select.",
        )
    say(
        f"{_format_preview(plan)}\n"
        f"Nothing is changed yet. To change these memories, repeat the command with --confirm {plan.token}"
    )


def _format_preview(plan: BulkPlan) -> str:
    kinds = ", ".join(f"{number} of kind {kind}" for kind, number in plan.counts.items())
    lines = [f"{_count(plan)}: {kinds}"]
    lines += [
        f"  {short_id(one.memory_id)}  {formatting.truncate(one.summary, MAX_SHOWN_CHARS)}"
        for one in plan.memories[:MAX_SHOWN]
    ]
    if (more := len(plan.memories) - MAX_SHOWN) > 0:
        lines.append(f"  … and {more:,} more")
    if plan.derived_ids:
        many = formatting.pluralize(len(plan.derived_ids), "memory is", "memories are")
        note = "deleted too" if plan.change.include_derived else "kept; --include-derived deletes them too"
        lines.append(f"{many} derived from the selected memories: {note}")
    return "\n".join(lines)


def _count(plan: BulkPlan) -> str:
    return formatting.pluralize(len(plan.memories), "memory", "memories")
