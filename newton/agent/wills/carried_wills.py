"""Carrying out of what persons want of memory, and what they are told about it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from newton.agent.events import publish
from newton.agent.wills.forgotten_statements import forget_targets
from newton.agent.wills.will_targets import MAX_SHOWN, ForgetTarget, FoundTargets, find_requests, find_targets
from newton.db.pool import Tx
from newton.dialogue import veils
from newton.dialogue.messages import StoredMessage
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.wills.will_reader import read_will
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.memory.tombstones import WITHHELD
from newton.providers.embedding import Embedder

MAX_SHOWN_CHARS = 100  # of each
VEIL_NOTICES = {
    "message": "Off the record: this message is not kept.",
    "next": "Your next message will not be kept.",
    "session": "Off the record from here on: nothing is kept until you say that I may remember again.",
    "lift": "On the record again: your messages are kept from here on.",
}
NOTHING_FOUND = "I found nothing of that in memory, so there was nothing to forget."
NOTHING_CHOSEN = "Nothing was forgotten."
ASK = 'Which of these should I forget? Answer for example "yes, all" or "the first".'


@dataclass(frozen=True, slots=True)
class WillReceipt:
    """The outcome of a will: a sentence for the person, and the statements to choose from."""

    text: str
    choices: Sequence[ForgetTarget] = ()
    is_alone: bool = True  # the message says nothing else

    def __str__(self) -> str:
        lines = [f"{n}. {one_line(one.text)[:MAX_SHOWN_CHARS]}" for n, one in enumerate(self.choices, 1)]
        return "\n".join([self.text, *lines])

    @property
    def without_text(self) -> str:
        """Return the sentence with ids in place of the texts of statements, for responses that are stored."""
        ids = ", ".join(f"{n}. {short_id(one.memory_id)}" for n, one in enumerate(self.choices, 1))
        return f"{self.text} {ids}".strip()


async def carry_out(
    tx: Tx,
    stored: Sequence[StoredMessage],
    *,
    embedder: Embedder | None = None,
    can_ask: bool = True,
    ctx: LifecycleContext,
) -> dict[int, WillReceipt]:
    """Carry out the wills of newly stored messages; return what to tell the person, by the position of the message.

    What exactly one statement can mean is forgotten at once; of several, or of what is only near by the `embedder`, the
    person chooses. Where nobody `can_ask`, as in an import, all that is surely meant is forgotten, and what alone
    can be meant.
    """
    receipts = dict[int, WillReceipt]()
    for line in stored:
        if line.will and (receipt := await _carry_out_one(tx, line, embedder, ctx, can_ask=can_ask)):
            receipts[line.position] = receipt
    return receipts


async def _carry_out_one(
    tx: Tx, line: StoredMessage, embedder: Embedder | None, ctx: LifecycleContext, *, can_ask: bool
) -> WillReceipt | None:
    will = line.will
    assert will is not None, "only lines with a will are carried out"
    is_alone = line.message.content == WITHHELD or (will.scope == "lift" and not read_will(line.message.content).kept)
    if will.scope == "choice":
        return await _forget_chosen(tx, will.topic, ctx)
    said = WillReceipt(VEIL_NOTICES.get(will.scope, ""), is_alone=is_alone and will.scope != "message")
    if not will.forgets and (will.scope not in ("session", "message") or not can_ask):
        return said
    found = await find_targets(tx, will, line, embedder=embedder, ctx=ctx)
    meant = [one for one in found.targets if one.is_meant]
    is_only = will.forgets and will.certainty == 1 and len(found.targets) == 1  # the wish can mean nothing else
    if (meant or is_only) and not can_ask and will.scope != "weak":
        return await _forget(tx, meant or found.targets, line, ctx, is_alone=is_alone)
    if not will.forgets:  # "nothing of this chat", "that is nobody's business" may mean what was said before it too
        return await _ask(tx, found.targets, line, ctx, said) if found.targets else said
    return await _forget_named(tx, found, line, ctx, is_alone=is_alone)


async def _forget_named(
    tx: Tx, found: FoundTargets, line: StoredMessage, ctx: LifecycleContext, *, is_alone: bool
) -> WillReceipt | None:
    """Forget what a will names, if only one statement can be meant; else return those to choose from."""
    will = line.will
    assert will is not None, "only lines with a will are carried out"
    held = await veils.read_session_will(tx, session_id=line.session_id, agent_id=ctx.agent_id)
    is_alone = is_alone and will.scope != "weak"
    if not found.targets and will.certainty < 1:
        return None if will.scope == "weak" else WillReceipt(VEIL_NOTICES["message"], is_alone=False)
    if not found.targets and will.topic and will.scope in ("last", "weak"):
        return WillReceipt(VEIL_NOTICES["message"], is_alone=False)
    if not found.targets and will.scope == "last" and will.is_bare:  # nothing was said before, so it announces
        await veils.save_session_will(tx, replace(held, veil="next"), session_id=line.session_id, agent_id=ctx.agent_id)
        return WillReceipt(VEIL_NOTICES["next"], is_alone=is_alone)
    if not found.targets:
        return WillReceipt(NOTHING_FOUND, is_alone=is_alone) if will.topic or not will.is_bare else None
    if found.is_sure and will.scope != "weak" and len(found.targets) == 1:
        return await _forget(tx, found.targets, line, ctx, is_alone=is_alone)
    return await _ask(tx, found.targets, line, ctx, WillReceipt("", is_alone=is_alone))


async def _ask(
    tx: Tx, targets: Sequence[ForgetTarget], line: StoredMessage, ctx: LifecycleContext, said: WillReceipt
) -> WillReceipt:
    """Remember what the person is asked to choose from, and the request if it is stored; return the question."""
    key = {"session_id": line.session_id, "agent_id": ctx.agent_id}
    held, shown = await veils.read_session_will(tx, **key), targets[:MAX_SHOWN]
    requests = await find_requests(tx, line, shown, ctx.agent_id)
    held.choices = [
        _to_entry(one) | {"request": request and _to_entry(request)}
        for one, request in zip(shown, requests, strict=True)
    ]
    await veils.save_session_will(tx, held, **key)
    return replace(said, text=f"{said.text} {ASK}".strip(), choices=shown)


def _to_entry(target: ForgetTarget) -> dict[str, Any]:
    return {"id": str(target.memory_id), "kept": list(target.kept)}


def _from_entry(entry: Mapping[str, Any]) -> ForgetTarget:
    return ForgetTarget(UUID(entry["id"]), "", tuple(entry["kept"]))


async def _forget_chosen(tx: Tx, chosen: str, ctx: LifecycleContext) -> WillReceipt:
    entries: list[dict[str, Any]] = json.loads(chosen)
    receipt = await _forget(tx, [_from_entry(one) for one in entries], None, ctx, is_alone=True)
    await _forget_request(tx, [_from_entry(one["request"]) for one in entries if one["request"]], ctx)
    return receipt


async def _forget_request(tx: Tx, requests: Sequence[ForgetTarget], ctx: LifecycleContext) -> None:
    """Forget what is stored of a request, which may name its targets; only what stays for each of them stays."""
    for request in requests[:1]:
        kept = set(request.kept).intersection(*(one.kept for one in requests))
        await forget_targets(tx, [request._replace(kept=tuple(sorted(kept)))], ctx=ctx)


async def _forget(
    tx: Tx, targets: Sequence[ForgetTarget], line: StoredMessage | None, ctx: LifecycleContext, *, is_alone: bool
) -> WillReceipt:
    topic = line.will.topic if line and line.will and line.will.scope == "topic" else ""
    count = await forget_targets(tx, targets, topic=topic, ctx=ctx) if targets else 0
    requests = await find_requests(tx, line, targets, ctx.agent_id) if line else []
    await _forget_request(tx, [one for one in requests if one], ctx)
    publish("memory.forgotten", {"forgotten": count}, agent_id=ctx.agent_id, now=ctx.now)
    forgotten = (
        "1 statement, with what was made of it" if count == 1 else f"{count} statements, with what was made of them"
    )
    text = f"Forgotten: {forgotten}." if count else NOTHING_CHOSEN
    return WillReceipt(text, is_alone=is_alone)
