"""The speakers of a session: the user, and others whom a program names."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Trust, lowest_trust
from newton.text.chat_lines import is_same_name

SQL = load("newton.dialogue", "session_speakers.sql")


async def has_one_speaker(tx: Tx, *, agent_id: UUID, session_id: UUID, user_names: Sequence[str] = ()) -> bool:
    """Return whether one person speaks in a session: all its user messages have the same name, or none.

    If the names of the user are known, it must be one of these; if not, nobody else may speak to the agent.
    """
    rows = await SQL["list_speakers"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    names = [row["name"] for row in rows if row["name"]]
    if len(rows) != 1 or not names:
        return len(rows) <= 1
    if user_names:
        return is_same_name(names[0], user_names)
    others = await SQL["hears_others"].fetch_one(tx, agent_id=agent_id, name=names[0])
    return not (others and others["hears_others"])


def limit_trust(trust: Trust, name: str | None, user_name: str) -> Trust:
    """Return the trust of what a speaker among several says: what others than the user say displaces nothing."""
    return lowest_trust([trust, "agent"]) if name and not is_same_name(name, [user_name]) else trust
