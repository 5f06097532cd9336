"""The speakers of a session: the user, and others whom a program names."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.text.chat_lines import is_same_name

SQL = load("newton.dialogue", "session_speakers.sql")


async def has_one_speaker(tx: Tx, *, agent_id: UUID, session_id: UUID, user_names: Sequence[str] = ()) -> bool:
    """Return whether one person speaks in a session: all its user messages have the same name, or none.

    If the names of the user are known, it must be one of these.
    """
    rows = await SQL["list_speakers"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    is_user = all(not row["name"] or not user_names or is_same_name(row["name"], user_names) for row in rows)
    return len(rows) <= 1 and is_user
