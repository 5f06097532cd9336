"""OpenAI Agents SDK session that stores its items as messages of a Newton session."""

import json
from collections.abc import Sequence
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from .. import ApiError, Client, MessageDict
from ..client import session_path

PAGE_SIZE = 200
MAX_BATCH = 1_000  # messages of one request
ITEM_NAME = "openai-agents-item"  # a tool message that holds an item as JSON
REMOVAL_NAME = "openai-agents-removal"  # a tool message that removes a number of earlier items, or all
ALL = "all"


class NewtonSession:
    """OpenAI Agents SDK session, used as `Runner.run(..., session=NewtonSession("planning", client))`.

    Messages, function calls and their text outputs become messages of the session, without the ids and annotations of
    the items. Every other item is stored as JSON in a tool message. The log of a session is append-only: `pop_item` and
    `clear_session` append a message that hides earlier ones from `get_items`; the memory keeps them.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, session_id: str, client: Client) -> None:
        self.session_id, self.client = session_id, client

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, the oldest first; with `limit`, only the last ones."""
        if limit is None and self.session_settings:
            limit = self.session_settings.limit
        items = list[dict[str, Any]]()
        path = f"{session_path(self.session_id)}/messages"
        try:
            async for message in self.client.iter_pages(path, limit=PAGE_SIZE):
                if message["name"] == REMOVAL_NAME:
                    del items[0 if message["content"] == ALL else -int(message["content"]) :]
                else:
                    items.append(to_item(message))
        except ApiError as error:
            if error.code != "not_found":
                raise
        found = items if limit is None else items[len(items) - min(limit, len(items)) :]
        return cast("list[TResponseInputItem]", found)

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Append the items to the session, which is created if needed."""
        messages = [to_message(cast("dict[str, Any]", item)) for item in items]
        for start in range(0, len(messages), MAX_BATCH):
            await self.client.append_messages(self.session_id, messages[start : start + MAX_BATCH])

    async def pop_item(self) -> TResponseInputItem | None:
        """Hide the last item from `get_items` and return it; return None if there is none."""
        items = await self.get_items(limit=1)
        if not items:
            return None
        await self._remove("1")
        return items[0]

    async def clear_session(self) -> None:
        """Hide all items from `get_items`; the memory keeps them."""
        if await self.get_items(limit=1):
            await self._remove(ALL)

    async def _remove(self, count: str) -> None:
        await self.client.append_messages(self.session_id, [{"role": "tool", "name": REMOVAL_NAME, "content": count}])


def to_message(item: dict[str, Any]) -> MessageDict:
    """Convert an item of the SDK to the message that stores it."""
    match item:
        case {"role": "user" | "assistant" | "system" | "developer" as role, "content": content} if text := to_text(
            content
        ):
            return {"role": "system" if role == "developer" else role, "content": text}
        case {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}:
            return {
                "role": "assistant",
                "content": "",
                "calls": [{"id": call_id, "name": name, "arguments": arguments}],
            }
        case {"type": "function_call_output", "call_id": call_id, "output": str(output)} if output:
            return {"role": "tool", "answers": call_id, "content": output}
        case _:
            return {"role": "tool", "name": ITEM_NAME, "content": json.dumps(item, ensure_ascii=False)}


def to_text(content: object) -> str | None:
    """Return the text of an item's content; None if it has no text, or parts of another type, such as images."""
    if isinstance(content, str):
        return content or None
    parts = cast("list[dict[str, Any]]", content)
    if any(part.get("type") not in ("input_text", "output_text") for part in parts):
        return None
    return "\n".join(part["text"] for part in parts) or None


def to_item(message: dict[str, Any]) -> dict[str, Any]:
    """Convert a stored message back to the item of the SDK."""
    if message["name"] == ITEM_NAME:
        return json.loads(message["content"])
    if message["calls"]:
        (call,) = message["calls"]
        return {"type": "function_call", "call_id": call["id"], "name": call["name"], "arguments": call["arguments"]}
    if message["answers"]:
        return {"type": "function_call_output", "call_id": message["answers"], "output": message["content"]}
    return {"role": message["role"], "content": message["content"]}
