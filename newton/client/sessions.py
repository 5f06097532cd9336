"""Client operations on what a session has: what is put into it, its statistics, and its entities."""

from .inventory import InventoryOperations
from .json_types import JsonDict, encode_segment


class SessionOperations(InventoryOperations):
    """Client operations on one session, which is named by its first argument."""

    async def session_stats(self, session: str) -> JsonDict:
        """Return the tokens of a session by part, its compactions, what is masked, and its latest context."""
        return await self.get(f"/v1/sessions/{encode_segment(session)}/stats")
