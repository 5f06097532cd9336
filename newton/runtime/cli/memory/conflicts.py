"""Commands `newton conflicts`: list facts that may contradict each other, and say which are right."""

from typing import Annotated

from cyclopts import Parameter

from newton.agent.memory_inputs import MAX_LIST_LIMIT
from newton.errors import InputError
from newton.heart.facts.conflicts import Settlement
from newton.runtime.chat_backend.local import to_conflict_view
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.conflict_page import list_conflict_page


async def list_conflicts(
    *,
    limit: LimitOption = 30,
    cursor: Annotated[
        str | None, Parameter(help="Cursor of a further page, which the last line of a page prints.")
    ] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List pairs of facts that may contradict each other.

    A context shows both facts together until `newton conflicts settle` says which is right.

    Example: newton conflicts
    """
    if not 1 <= limit <= MAX_LIST_LIMIT:
        hint = f"Give a limit from 1 to {MAX_LIST_LIMIT}; --cursor lists further pages."
        raise InputError(f"A limit of {limit} is out of range.", hint=hint)
    async with open_agent(load_settings(agent)) as newton:
        page = await list_conflict_page(newton.conflicts("cli"), limit=limit, cursor=cursor)
    pairs = list(map(to_conflict_view, page.pairs))
    if json:
        items = [pair.model_dump(mode="json") for pair in pairs]
        formatting.print_json({"items": items, "next": page.next, "count": page.count})
        return
    say(formatting.format_open_conflicts(pairs, settle_command="newton conflicts settle"))
    if page.next:
        formatting.print_notice(f"\nMore: the same command with --cursor {page.next}")


async def settle_conflict(
    memory: Annotated[
        str, Parameter(help="Id of one of the two facts, or the end of the id as `newton conflicts` prints it.")
    ],
    keep: Annotated[
        Settlement,
        Parameter(
            help="newer: the newer fact replaces the older one; older: the newer one is wrong; both: both are true;"
            " same: both say the same, so merge them."
        ),
    ],
    *,
    agent: AgentOption = None,
) -> None:
    """Settle the conflicts of a fact: keep the newer fact, the older one or both, or merge them.

    Example: newton conflicts settle 3f9c2a71 newer
    """
    async with open_agent(load_settings(agent)) as newton:
        pairs = await newton.conflicts("cli").settle(memory, keep)
    say(formatting.format_settlement(len(pairs), keep))
