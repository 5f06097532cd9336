"""Veils: what a person does not want kept is replaced by a mark before a message is stored."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Message
from newton.heart.reconciliation.citations import is_limited
from newton.heart.wills.will_reader import Will, read_choice, read_will
from newton.memory import tombstones
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, WriteContext
from newton.memory.tombstones import FORGOTTEN, WITHHELD, is_redacted, mark_rest, seal_ref
from newton.providers.speech_reader import MAX_CONTEXT_CHARS

SQL = load("newton.dialogue", "veils.sql")
# "For this recipe" at the end limits a request; before it, or in another sentence, it does not.
_IN_BETWEEN = re.compile(r"\bfor (?:this|that|the) \w+(?!\W*$)", re.IGNORECASE)
MAX_EARLIER = 8  # statements before a message, behind which it is read


@dataclass(slots=True)
class SessionWill:
    """The state of a session that holds for its next messages.

    `veil` is `next` or `session` if they are not to be kept, and `covers_reply` means that the last message of the
    person was not. `lifted_by` is a hash of words that end a veil, and `choices` are what the person was asked to
    choose from. `is_asked` means that the last message is a question of the assistant, and `said` has the beginnings of
    what persons said last.
    """

    veil: str | None
    covers_reply: bool
    choices: Sequence[Any]
    lifted_by: bytes | None = None
    is_asked: bool = False
    said: Sequence[str] = ()


async def read_session_will(tx: Tx, *, session_id: UUID, agent_id: UUID) -> SessionWill:
    """Return what holds for the next messages of a session."""
    row = await SQL["read"].fetch_one(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        mark=f"%{WITHHELD}%",
        max_chars=MAX_CONTEXT_CHARS,
        max_said=MAX_EARLIER,
    )
    assert row is not None, "the query has one row"
    return SessionWill(
        veil=row["veil"],
        covers_reply=row["covers_reply"],
        choices=json.loads(row["choices"] or "[]"),
        lifted_by=row["lifted_by"],
        is_asked=row["is_asked"],
        said=row["said"][::-1],
    )


async def save_session_will(tx: Tx, will: SessionWill, *, session_id: UUID, agent_id: UUID) -> None:
    """Store what holds for the next messages of a session."""
    choices = json.dumps(list(will.choices))
    key = {"agent_id": agent_id, "session_id": session_id}
    await SQL["save"].execute(tx, **key, veil=will.veil, lifted_by=will.lifted_by, choices=choices)


async def withhold(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext
) -> list[tuple[Message, Will | None]]:
    """Return the messages as they may be stored, each with the will that it states.

    The words of persons that are off the record are replaced by a mark, and so are requests to forget, which may name
    what is to be forgotten, and the replies to both.
    """
    if not messages:
        return []
    held = await read_session_will(tx, session_id=session_id, agent_id=ctx.agent_id)
    before = (held.veil, held.choices)
    result = [_withhold_one(line, held, agent_id=ctx.agent_id) for line in messages]
    if (held.veil, held.choices) != before:
        await save_session_will(tx, held, session_id=session_id, agent_id=ctx.agent_id)
    return result


def _withhold_one(line: Message, held: SessionWill, *, agent_id: UUID) -> tuple[Message, Will | None]:
    if line.content in (WITHHELD, FORGOTTEN):
        return replace(line, is_notice=True), None
    if line.role == "system" or (line.is_notice and line.role == "user"):
        return line, None
    if line.role != "user":
        held.is_asked = line.role == "assistant" and line.content.rstrip(" \n\"'”»)").endswith(("?", "？"))
        is_covered = held.covers_reply or held.choices  # a question what to forget lists statements
        return (_mark(line, "", agent_id) if is_covered else line), None
    will, kept = _read_line(line, held)
    held.is_asked, held.said = False, [*held.said, kept][-MAX_EARLIER:]
    choices, held.choices = held.choices, ()
    if choices and line.trust in PERSON_TIERS and (choice := read_choice(line.content, len(choices))):
        held.covers_reply = False
        return replace(line, is_notice=True), Will("choice", json.dumps([choices[index] for index in choice.indexes]))
    if held.veil == "session" and held.lifted_by in tombstones.hash_phrases(line.content, agent_id=agent_id):
        will, kept = Will("lift"), line.content
    if held.veil and (will is None or will.scope != "lift"):
        held.veil = None if held.veil == "next" else held.veil
        held.covers_reply = True
        return _mark(line, "", agent_id), Will("message")
    if will and will.scope in ("next", "session", "lift"):
        held.veil = None if will.scope == "lift" else will.scope
        held.lifted_by = next(iter(tombstones.hash_phrases(will.topic, agent_id=agent_id)), None)
    held.covers_reply = will is not None and will.scope != "lift" and kept != line.content
    return (_mark(line, kept, agent_id) if held.covers_reply else line), will


def _read_line(line: Message, held: SessionWill) -> tuple[Will | None, str]:
    """Return the will of a person's message, and the rest of it.

    One that a model only reports may keep itself out, and no more. What a person wants left out for one time stays.
    """
    if line.trust in UNTRUSTED_TIERS:
        return None, line.content
    will, kept = read_will(line.content, is_answer=held.is_asked, earlier=tuple(filter(None, held.said)))
    if will is None or (line.trust not in PERSON_TIERS and will.scope != "message"):
        return None, line.content
    if will.scope == "last" and will.is_bare and not will.topic and not any(held.said):
        return Will("next"), kept  # nothing was said before, so it announces
    request = _IN_BETWEEN.sub("", will.request)
    is_idle = (will.forgets and is_limited(request)) or (will.scope == "lift" and not held.veil)
    return (None, line.content) if is_idle else (will, kept)


def _mark(line: Message, kept: str, agent_id: UUID) -> Message:
    """Return a message with a mark in place of what is not kept, under an id that does not depend on the text."""
    return replace(
        line,
        content=mark_rest(kept, WITHHELD),
        is_notice=not kept,
        ref=line.ref or seal_ref(line.stable_ref, agent_id=agent_id),
        calls=tuple(call._replace(name="withheld", arguments="{}") for call in line.calls),
    )


async def leave_out_forgotten(tx: Tx, messages: Sequence[Message], *, ctx: WriteContext) -> list[Message]:
    """Return the messages without sentences that a person asked to forget, unless a person now tells them anew."""
    texts = {line.content for line in messages if not is_redacted(line.content)}
    buried = await tombstones.find_buried(tx, texts, (), agent_id=ctx.agent_id)
    if not buried:
        return list(messages)
    result, told = list[Message](), list[str]()
    for line in messages:
        is_new = line.role == "user" and line.trust in PERSON_TIERS and not line.is_retold
        old = {one for one, time in buried.items() if not is_new or line.said_at <= time}
        told += [line.content] if is_new else []
        content = tombstones.leave_out(line.content, old)
        result.append(line if content == line.content else _forget(line, content, ctx.agent_id))
    await tombstones.lift(tx, told, agent_id=ctx.agent_id)
    return result


def _forget(line: Message, content: str, agent_id: UUID) -> Message:
    ref = line.ref or seal_ref(line.stable_ref, agent_id=agent_id)
    return replace(line, content=content, ref=ref, is_notice=line.is_notice or content == FORGOTTEN)
