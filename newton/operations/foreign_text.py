"""Text of tools and the web that operations give to models, and the trust that what these state afterwards can have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel

from newton.dialogue.sessions import find_foreign_trust
from newton.heart.identity.standing_wishes import may_state_rule
from newton.memory.foreign_readings import find_lowest_read, record_reading
from newton.memory.memory import PERSON_TIERS, Trust, digest, lowest_known_trust
from newton.memory.source_marks import find_foreign
from newton.operations.caller import OperationCaller

ANY_SESSION = "{} in a session"  # a later call that leaves its session out
OF_RULES = "{} rules"  # a file of the person, which bounds only what a model states as a rule


async def limit_trust(caller: OperationCaller, arguments: Mapping[str, Any], text: str = "") -> OperationCaller:
    """Return the caller with the lowest trust of what it was given: text of tools or the web in its session, or
    without one, lately with its token, through any interface. A person keeps theirs.

    Rules in a file that it was given bound it too if the `text` that it writes may state a rule.
    """
    if caller.trust in PERSON_TIERS:
        return caller
    sessions = await _find_sessions(caller, arguments)
    token = _name_token(caller)
    readers = [[*map(str, sessions)], [token] if sessions else [token, ANY_SESSION.format(token)]]
    if may_state_rule(text):
        readers = [[*names, *map(OF_RULES.format, names)] for names in readers]
    async with caller.scope.write() as (tx, ctx):
        read: list[Trust | None] = [await find_lowest_read(tx, sessions=readers[0], tokens=readers[1], ctx=ctx)]
        for one in sessions:
            read.append(await find_foreign_trust(tx, session_id=one, agent_id=ctx.agent_id))  # noqa: PERF401  # its type
    return replace(caller, read=lowest_known_trust([caller.read, *read]))


async def note_foreign_text(caller: OperationCaller, arguments: Mapping[str, Any], result: object) -> None:
    """Record that a result gave text of tools or the web to a model, or rules in a file, if it did."""
    if caller.trust in PERSON_TIERS:
        return
    records = list(_iter_records(result))
    trust = lowest_known_trust(map(_find_foreign, records))
    has_rules = any(may_state_rule(passage) for one in records for passage in _list_passages(one))
    if trust is None and not has_rules:
        return
    readers = [*map(str, await _find_sessions(caller, arguments))]
    readers.append((ANY_SESSION if readers else "{}").format(_name_token(caller)))
    async with caller.scope.write() as (tx, ctx):
        if trust:
            await record_reading(tx, trust, readers, ctx=ctx)
        if has_rules:
            await record_reading(tx, "tool", [OF_RULES.format(name) for name in readers], ctx=ctx)


def _name_token(caller: OperationCaller) -> str:
    """Return a name of the caller's token for the record of readings, without a text of a person."""
    return f"token {digest(caller.author).hex()[:16]}"


async def _find_sessions(caller: OperationCaller, arguments: Mapping[str, Any]) -> list[UUID]:
    """Return the sessions of a call that exist: the one that it names, and that of its connection."""
    query = arguments.get("query")
    named = [arguments.get("session"), getattr(query, "session", None), caller.connection_session]
    names = dict.fromkeys(name for name in named if isinstance(name, str))
    found = [await caller.sessions.find(name) for name in names]
    return [one for one in found if one is not None]


def _iter_records(value: object) -> Iterator[object]:
    """Yield the records in a result, at any depth."""
    if isinstance(value, str | bytes):
        return
    if isinstance(value, Mapping):
        parts = list(cast("Mapping[str, object]", value).values())
    elif isinstance(value, Sequence):
        parts = list(cast("Sequence[object]", value))
    elif isinstance(value, BaseModel):
        parts = list(vars(value).values())
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, one.name) for one in fields(value)]
        yield value
    else:
        return
    for part in parts:
        yield from _iter_records(part)


def _find_foreign(record: object) -> Trust | None:
    """Return the trust of a record if it is text of a tool or the web. One that does not say if it waits for a
    confirmation does.
    """
    trust: Trust | None = getattr(record, "foreign_trust", None)  # of a context
    if trust or hasattr(record, "foreign_trust"):
        return trust
    trust = getattr(record, "trust", None)
    kind, quarantined = getattr(record, "kind", None), getattr(record, "quarantined", True)
    return find_foreign(trust, kind=kind, quarantined=quarantined) if trust else None


def _list_passages(record: object) -> Sequence[str]:
    """Return the texts of files in a record: those of a context, or the text of a passage."""
    if getattr(record, "kind", None) == "passage":
        return [getattr(record, "text", "")]
    return getattr(record, "passages", ()) if hasattr(record, "foreign_trust") else ()
