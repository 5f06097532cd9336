"""Replacement of references to output items of stored responses by these items."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from newton.agent.services.responses import ResponseService
from newton.dialogue.response_store import StoredResponse
from newton.errors import InputError
from newton.runtime.api.responses.item_ids import ItemPlace, parse_item_id
from newton.runtime.api.responses.request_models import (
    FunctionCallItem,
    InputItem,
    ReasoningItem,
    ReferenceItem,
    ResponseMessageItem,
)


async def resolve_references(items: Sequence[InputItem], responses: ResponseService) -> list[InputItem]:
    """Return the items, with each reference replaced by the stored item. Raises InputError for an unknown reference."""
    places = {
        index: parse_item_id(item.id, param=_param(index))
        for index, item in enumerate(items)
        if isinstance(item, ReferenceItem)
    }
    stored = await responses.find(list({place.response_id for place in places.values()}))
    return [
        _find_item(places[index], stored, param=_param(index)) if index in places else item
        for index, item in enumerate(items)
    ]


def _find_item(place: ItemPlace, stored: Mapping[UUID, StoredResponse], *, param: str) -> InputItem:
    response = stored.get(place.response_id)
    if response and place.kind == "rs":
        return ReasoningItem(type="reasoning")
    if response and place.kind == "msg" and response.text:
        return ResponseMessageItem(role="assistant", content=response.text)
    if response and place.kind == "fc" and place.number < len(response.calls):
        call = response.calls[place.number]
        return FunctionCallItem(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments)
    raise InputError(
        "The referenced item is not stored.", hint="Send the item itself in place of a reference to it.", param=param
    )


def _param(index: int) -> str:
    return f"input[{index}].id"
