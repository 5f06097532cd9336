"""Commands `newton items`: JSON values that programs store under a namespace and a key."""

from json import dumps
from typing import Annotated

from cyclopts import Parameter

from newton.agent.item_inputs import MAX_ITEM_LIMIT, SearchItemsInput
from newton.errors import InputError
from newton.heart.items.item_store import ItemAddress, StoredItem
from newton.heart.items.item_value import clean_namespace, render_text
from newton.memory.representations import one_line
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import (
    AgentOption,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
    load_settings,
    require_yes,
)
from newton.runtime.cli.printing import say

PREVIEW_CHARACTERS = 80

AddressArgument = Annotated[list[str], Parameter(help="Parts of the namespace, then the key of the item.")]


async def list_items(
    namespace: Annotated[
        list[str] | None,
        Parameter(help="First parts of the namespace; if omitted, items of all namespaces are listed."),
    ] = None,
    /,
    *,
    query: Annotated[str | None, Parameter(help="Text to search for; the most similar items come first.")] = None,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List items (JSON values of programs), the last updated first, or search them.

    Example: newton items list users ana --query "What does Ana eat?"
    """
    if not 1 <= limit <= MAX_ITEM_LIMIT:
        raise InputError(f"A limit of {limit} is out of range.", hint=f"Give a limit from 1 to {MAX_ITEM_LIMIT}.")
    search = SearchItemsInput(namespace=clean_namespace(namespace or ()), query=query, limit=limit)
    async with open_agent(load_settings(agent)) as newton:
        found = await newton.items("cli").search(search)
    if json:
        formatting.print_json([_to_json(item) for item in found.items])
        return
    for item in found.items:
        text = one_line(render_text(item.value))
        preview = text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]} …"
        say(f"{item.updated_at:%Y-%m-%d}  {_to_path(item)}  {preview}")
    if found.problem:
        say(f"Searched by words only: {found.problem}.")
    if not found.items:
        say("No items. Programs store them with `PUT /v1/items`.")


async def show_item(address: AddressArgument, /, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show the value of an item.

    Example: newton items show users ana food
    """
    async with open_agent(load_settings(agent)) as newton:
        item = await newton.items("cli").get(_to_address(address))
    if json:
        formatting.print_json(_to_json(item))
        return
    say(f"{_to_path(item)}, updated {item.updated_at:%Y-%m-%d %H:%M}")
    say(dumps(item.value, ensure_ascii=False, indent=2))


async def delete_item(
    address: AddressArgument,
    /,
    *,
    reason: ReasonOption = "requested",
    yes: YesOption = False,
    agent: AgentOption = None,
) -> None:
    """Permanently delete an item, and the memories made from its present and earlier values.

    Example: newton items delete users ana food --reason "it is outdated"
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.items("cli")
        item = await service.get(_to_address(address))
        require_yes(f"Permanently delete the item {_to_path(item)}?", yes=yes)
        deleted = await service.delete(ItemAddress(item.namespace, item.key), reason=reason)
    memories = formatting.pluralize(len(deleted.memory_ids), "memory", "memories")
    say(f"Deleted the item {_to_path(item)} with {memories}.")


def _to_address(parts: list[str]) -> ItemAddress:
    if len(parts) < 2:
        hint = "Give the parts of the namespace and then the key: `newton items show users ana food`."
        raise InputError("The namespace or the key of the item is missing.", hint=hint)
    return ItemAddress(clean_namespace(parts[:-1]), parts[-1])


def _to_path(item: StoredItem) -> str:
    return "/".join((*item.namespace, item.key))


def _to_json(item: StoredItem) -> dict[str, object]:
    return {
        "item_id": str(item.item_id),
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "memory_id": str(item.memory_id) if item.memory_id else None,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        "score": item.score,
    }
