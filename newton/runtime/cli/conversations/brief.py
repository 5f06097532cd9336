"""Command `newton sessions brief`: the goals, deadlines, rules, constraints and open items of a session."""

from typing import Annotated

from cyclopts import Parameter

from newton.dialogue.brief.brief_items import KIND_LABELS, BriefItem
from newton.memory.hygiene import clean_ref
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.conversations.sessions import SessionArgument
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.session_views import to_brief_item_info


async def show_brief(
    session: SessionArgument,
    *,
    done: Annotated[str | None, Parameter(help="End of the id of an item that is done.")] = None,
    drop: Annotated[str | None, Parameter(help="End of the id of an item that no longer holds.")] = None,
    closed: Annotated[bool, Parameter(negative=(), help="Also list items that are done, replaced or dropped.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the brief of a session: goals, deadlines, rules, constraints and open items, word for word.

    They are recognized when they are said and stay in every context of the session, whatever is summarized.

    Example: newton sessions brief planning
    """
    ref = clean_ref(session, what="session")
    async with open_agent(load_settings(agent)) as newton:
        service = newton.briefs("cli")
        if done is not None:
            await service.close(ref, done, "done")
        if drop is not None:
            await service.close(ref, drop, "dropped")
        items = await service.list_items(ref, only_open=not closed)
    if json:
        formatting.print_json([to_brief_item_info(item).model_dump(mode="json") for item in items])
    else:
        say("\n".join(map(_format_item, items)) or f"The session {session} has no goals, deadlines or rules yet.")


def _format_item(item: BriefItem) -> str:
    status = "" if item.status == "open" else f"  ({item.status} after message {item.closed_position})"
    return f"{short_id(item.item_id)}  {KIND_LABELS[item.kind] + ':':<12}{item.text}{status}"
