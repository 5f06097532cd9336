"""Which attributes of a subject have one value at a time: a newer value of such a one supersedes the older."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError

SQL = load("newton.heart", "attributes.sql")

# What everybody would say has one value at a time. A person may declare others, or the opposite, for an agent.
_SHIPPED = """
    age, address, birthday, born in, born on, capital, ceo, deadline, due date, email, employer, favourite
    colour, favorite color, full name, gender, height, home town, hometown, husband, job, job title, lives in,
    lives at, located in, location, marital status, married to, moved to, name, nationality, owner, partner,
    phone, phone number, price, role, salary, size, spouse, stands on, status, time zone, timezone, title,
    version, weight, wife, works at, works for, works in
"""
SINGLE = frozenset(" ".join(name.split()) for name in _SHIPPED.split(","))


def normal(attribute: str) -> str:
    """The attribute as it is compared and kept. Raises InputError when it has no words.

    >>> normal("Lives_In ")
    'lives in'
    """
    if not says_something(attribute):
        raise InputError(f"{attribute!r} tells nothing of anything.", hint="Write it in words, such as 'lives in'.")
    return " ".join(_words(attribute))


def says_something(attribute: str) -> bool:
    """Whether it has words."""
    return bool(_words(attribute))


def _words(attribute: str) -> list[str]:
    return attribute.replace("_", " ").replace("-", " ").casefold().split()


def subject_key(subject: str) -> str:
    """The subject as it is compared.

    >>> subject_key(" Ana  BERG")
    'ana berg'
    """
    return " ".join(subject.casefold().split())


async def declare(tx: Tx, attribute: str, *, agent_id: UUID, single: bool) -> None:
    """From now on the attribute has one value at a time, or many. Facts that are there stay as they were told."""
    await SQL["set_single_valued"].run(tx, agent_id=agent_id, attribute=normal(attribute), single_valued=single)


async def single_valued(tx: Tx, attributes: Sequence[str], *, agent_id: UUID) -> set[str]:
    """Those of the attributes, in their normal form, that have one value at a time."""
    rows = await SQL["get_declared"].all(tx, agent_id=agent_id, attributes=attributes)
    declared = {row["attribute"]: row["single"] for row in rows}
    return {attribute for attribute in attributes if declared.get(attribute, attribute in SINGLE)}


async def listed(tx: Tx, *, agent_id: UUID) -> dict[str, bool]:
    """Every attribute that a fact has or that was declared, and whether it has one value at a time."""
    rows = await SQL["list_attributes"].all(tx, agent_id=agent_id)
    return {row["attribute"]: row["attribute"] in SINGLE if row["single"] is None else row["single"] for row in rows}
