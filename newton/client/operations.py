"""Client operations on decisions, sessions, tasks and reports."""

from .inventory import InventoryOperations
from .response_types import JsonDict


class AgentOperations(InventoryOperations):
    """Client operations that return plain JSON. `/openapi.json` describes the fields of each route.

    Each raises ApiError, with the code `not_found` for an id or a name that does not exist.
    """

    async def prompt(self, turn: str = "latest", *, session: str | None = None) -> JsonDict:
        """Return what the model received in each call of a turn, and what of the conversation was left out.

        `turn` is `latest`, `previous`, the position of one of its messages, or the id of a prompt. Without a `session`,
        it is in the session of the latest prompt.
        """
        return await self.get(f"/v1/prompts/{turn}", {"session": session} if session else {})

    async def agents(self) -> list[JsonDict]:
        """List the agents of the database. Needs the token of the operator."""
        return await self.get_items("/v1/agents")
