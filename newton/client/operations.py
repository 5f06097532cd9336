"""Client operations on decisions, sessions, tasks and reports."""

from .inventory import InventoryOperations
from .response_types import JsonDict


class AgentOperations(InventoryOperations):
    """Client operations that return plain JSON. `/openapi.json` describes the fields of each route.

    Each raises ApiError, with the code `not_found` for an id or a name that does not exist.
    """

    async def agents(self) -> list[JsonDict]:
        """List the agents of the database. Needs the token of the operator."""
        return await self.get_items("/v1/agents")
