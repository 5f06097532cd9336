"""Attributes of facts, such as "lives in".

A single-valued attribute has one current value for each subject: a newer value supersedes an older one.
"""

from collections.abc import Mapping
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError

SQL = load("newton.heart.facts", "attributes.sql")

# Single-valued by default. An agent's own declarations override this list.
_BUILT_IN = """
    age, address, birthday, born in, born on, capital, ceo, deadline, due date, email, employer, favourite
    colour, favorite color, full name, gender, height, home town, hometown, husband, job, job title, lives in,
    lives at, located in, location, marital status, married to, moved to, name, nationality, owner, partner,
    phone, phone number, price, role, salary, size, spouse, stands on, status, time zone, timezone, title,
    version, weight, wife, works at, works for, works in
"""
SINGLE_VALUED = frozenset(" ".join(name.split()) for name in _BUILT_IN.split(","))


def normalize_attribute(attribute: str) -> str:
    """Return the attribute in lower case, its words separated by single spaces. Raises InputError if it has no words.

    >>> normalize_attribute("Lives_In ")
    'lives in'
    """
    if not has_words(attribute):
        raise InputError(f"Invalid attribute {attribute!r}.", hint="Use words, such as 'lives in'.")
    return " ".join(_split_words(attribute))


def has_words(attribute: str) -> bool:
    """Return whether an attribute contains words. An attribute without words cannot be normalized."""
    return bool(_split_words(attribute))


def _split_words(attribute: str) -> list[str]:
    return attribute.replace("_", " ").replace("-", " ").casefold().split()


def normalize_subject(subject: str) -> str:
    """Return the subject in lower case, its words separated by single spaces.

    >>> normalize_subject(" Ana  BERG")
    'ana berg'
    """
    return " ".join(subject.casefold().split())


async def set_cardinality(tx: Tx, attribute: str, *, agent_id: UUID, single: bool) -> None:
    """Declare an attribute single-valued or multi-valued for an agent. Existing facts do not change."""
    await SQL["set_single_valued"].execute(
        tx, agent_id=agent_id, attribute=normalize_attribute(attribute), single_valued=single
    )


async def select_single_valued(
    tx: Tx, keys: Mapping[str, tuple[str, str]], *, agent_id: UUID
) -> dict[str, tuple[str, str]]:
    """Return those of the pairs of a subject and a normalized attribute whose attribute is single-valued."""
    if not keys:
        return {}
    attributes = sorted({attribute for _, attribute in keys.values()})
    rows = await SQL["get_declared"].fetch_all(tx, agent_id=agent_id, attributes=attributes)
    declared = {row["attribute"]: row["single"] for row in rows}
    return {ref: key for ref, key in keys.items() if declared.get(key[1], key[1] in SINGLE_VALUED)}


async def list_attributes(tx: Tx, *, agent_id: UUID) -> dict[str, bool]:
    """Return every attribute that is declared or that a fact has, each with True if it is single-valued."""
    rows = await SQL["list_attributes"].fetch_all(tx, agent_id=agent_id)
    return {attribute: attribute in SINGLE_VALUED if single is None else single for attribute, single in rows}
