"""Rulings on changes: the rule of authority, asked with what is stored and with the message that a change cites."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from newton.agent.reconciliation.known_items import find_named_item, list_user_names
from newton.agent.scope import AgentScope
from newton.brain.ledger import lock_chain
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import message_queues as queue
from newton.dialogue.message_queues import DueSession
from newton.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from newton.heart.facts.conflicts import concerns_safety
from newton.heart.facts.fact_store import lock_facts
from newton.heart.reconciliation.citations import asks_to_end, gives_other_value, is_taken_back, says_statement
from newton.heart.reconciliation.prompt import number_batch
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import (
    KnownItem,
    KnownKind,
    NewLine,
    ReconcilingInput,
)
from newton.heart.speakers import TARGETED, Act, ActRuling, Speaker, TargetStatement, decide
from newton.memory.lookup import resolve_id
from newton.memory.memory import PERSON_TIERS, Trust

SQL = load("newton.agent.reconciliation", "rulings.sql")

STATED_KINDS: tuple[KnownKind, ...] = ("fact", "procedure", "decision")

CITE_HINT = (
    "Ask the person to do it, or give the id of their message that says this, if the operation has the field `line`."
)
PERSON_HINT = "Ask the person to do it, with a command of theirs, in the dashboard or with a token `--for person`."
RULES_HINT = "Ask the person to do it. A model may only propose rules and lines of the identity."


class MessagePlace(NamedTuple):
    """The session and the position of a message."""

    session_id: UUID
    position: int


async def load_lines_at(tx: Tx, place: MessagePlace, *, user_name: str, scope: AgentScope) -> tuple[NewLine, ...]:
    """Return the message at a place after those before it, which count as read; nothing if there is no message."""
    start = DueSession(
        session_id=place.session_id,
        ref="",
        first_position=place.position,
        reconciled_position=-1,
        failed_readings=0,
        recorded_at=scope.now(),
    )
    unread = await queue.load_lines(tx, start, user_name=user_name, agent_id=scope.agent_id)
    cited = next((one for one in unread.lines if not one.is_read), None)
    return (*(one for one in unread.lines if one.is_read), cited) if cited else ()


def build_batch(
    lines: tuple[NewLine, ...], known: tuple[KnownItem, ...], *, names: Sequence[str], scope: AgentScope
) -> ReconcilingInput:
    """Return the message that is the last of the lines, with the item that it may change, as a reconciliation."""
    batch = ReconcilingInput(
        user_name=names[0] if names else "",
        aliases=tuple(names[1:]),
        known=known,
        lines=lines,
        now=scope.now().astimezone(),
    )
    return number_batch(batch)


class ProposedChange(NamedTuple):
    """An act of a speaker on the memories `targets`, named by their ids or the ends of these, or on other statements.

    `read` is the lowest trust of texts of others that a model was given, `line` the id of the message that the act
    cites, and `text` what takes the place of a target.
    """

    act: Act
    speaker: Speaker
    read: Trust | None = None
    targets: Sequence[str | TargetStatement] = ()
    line: str | None = None
    text: str = ""


async def rule_on(scope: AgentScope, change: ProposedChange) -> ActRuling:
    """Return the ruling on a change: the strictest of those on each target.

    Raises ForbiddenError if the change is refused, and NotFoundError for an unknown message.
    """
    act, speaker, read = change.act, change.speaker, change.read
    names_targets = act in TARGETED and bool(change.targets)
    rulings = await _rule_on_targets(scope, change) if names_targets else []
    rulings = rulings or [decide("work" if names_targets else act, speaker, read=read)]
    ruling = next((one for one in rulings if one.verdict != "allowed"), rulings[0])
    is_kept = ruling.verdict == "contested" and change.text  # without a text there is nothing to store beside it
    if ruling.verdict == "refused" or (ruling.verdict == "contested" and not is_kept):
        if act not in TARGETED:
            raise ForbiddenError("Only a person may do this.", hint=RULES_HINT)
        what = "This changes what a person said, and no message of theirs that you named says it."
        if speaker == "app":
            what = "The fact is marked as core or concerns safety, so only a person changes it."
        raise ForbiddenError(what, hint=CITE_HINT if speaker == "model" else PERSON_HINT)
    return ruling


async def _rule_on_targets(scope: AgentScope, change: ProposedChange) -> list[ActRuling]:
    """Return the rulings on each target that exists; the operation says which does not."""
    read = change.read
    others = [one for one in change.targets if isinstance(one, TargetStatement)]
    rulings = [decide(change.act, change.speaker, target=one, read=read) for one in others]
    async with scope.transaction() as tx:
        for memory_ref in sorted({one for one in change.targets if isinstance(one, str)}):
            targets = list[TargetStatement]()
            with suppress(NotFoundError, InputError):
                targets = await _read_targets(tx, change.act, memory_ref, scope=scope)
            for target in targets:
                ruling = decide(change.act, change.speaker, target=target, read=read)
                if ruling.verdict != "allowed" and change.line is not None:
                    cited = await _verify_citation(tx, change, memory_ref, change.line, scope=scope)
                    ruling = decide(change.act, change.speaker, target=target, cited=cited, read=read)
                rulings.append(ruling)
    return rulings


async def _read_targets(tx: Tx, act: Act, memory_ref: str, *, scope: AgentScope) -> list[TargetStatement]:
    """Return what decides who may change a memory; of a duplicate also its original, which all but a deletion reach.

    Nobody else changes them until the transaction ends. Raises NotFoundError for an unknown memory; of one that has
    been deleted meanwhile, nothing is returned.
    """
    memory_id = await resolve_id(tx, memory_ref, agent_id=scope.agent_id)
    reached = await lock_facts(tx, [memory_id], ctx=scope.write_context(), replaces=act == "displace")
    if not reached and await SQL["is_decision"].fetch_one(tx, agent_id=scope.agent_id, memory_id=memory_id):
        await lock_chain(tx, agent_id=scope.agent_id)  # before the row, as all writers of decisions do
    ids = {memory_id, *(one["memory_id"] for one in reached if act != "delete")}
    rows = await SQL["lock_targets"].fetch_all(tx, agent_id=scope.agent_id, memory_ids=sorted(ids))
    locked = [row["memory_id"] for row in rows]
    # read by a statement of its own, which sees what was confirmed while the lock was waited for
    return [
        TargetStatement(
            row["trust"],
            row["is_vouched"],
            needs_person=row["kind"] == "fact" and (row["state"] == "CORE" or concerns_safety(row["text"])),
        )
        for row in await SQL["read_targets"].fetch_all(tx, agent_id=scope.agent_id, memory_ids=locked)
    ]


async def _verify_citation(
    tx: Tx, change: ProposedChange, memory_ref: str, line: str, *, scope: AgentScope
) -> Trust | None:
    """Return the trust of the cited message if it is by a person and says the change of the memory, else None.

    Raises NotFoundError if there is no such message.
    """
    scope, agent_id = scope.within(tx), scope.agent_id
    line_id = await resolve_id(tx, line, agent_id=agent_id, kind="exchange")
    target_id = await resolve_id(tx, memory_ref, agent_id=agent_id)
    row = await SQL["find_place"].fetch_one(tx, agent_id=agent_id, memory_id=line_id)
    names = await list_user_names(tx, scope)
    place = MessagePlace(row["thread_id"], row["position"]) if row else None
    lines = await load_lines_at(tx, place, user_name=names[0] if names else "", scope=scope) if place else ()
    if not place or not lines or lines[-1].memory_id != line_id:
        return None
    zone = scope.now().astimezone().tzinfo
    try:
        known = await find_named_item(scope, target_id.hex, lines, kinds=STATED_KINDS, zone=zone)
    except (NotFoundError, ConflictError):  # it is no current statement
        return None
    stated = [row["text"] for row in await SQL["list_stated"].fetch_all(tx, agent_id=agent_id, line_id=line_id)]
    if not await SQL["is_newer"].fetch_all(tx, agent_id=agent_id, line_id=line_id, memory_id=target_id):
        return None
    later = [row["content"] for row in await SQL["list_later"].fetch_all(tx, agent_id=agent_id, **place._asdict())]
    text, replaced = {"displace": (change.text, known.text), "confirm": (known.text, "")}.get(change.act, ("", ""))
    if is_taken_back(lines[-1].text, text, later, instead_of=replaced):
        return None
    batch = build_batch(lines[-1:], (known,), names=names, scope=scope)
    return lines[-1].trust if _says(batch, change, stated) else None


def _says(batch: ReconcilingInput, change: ProposedChange, stated: Sequence[str]) -> bool:
    """Return whether the last line of the batch is by a person and says this change of the known item word for word.

    `stated` are the facts that were learnt from the line and hold: what it does not assert, as a rumour, is none.
    A statement replaces only one that change detection takes for its earlier value.
    """
    line, (known,), names = batch.lines[-1], batch.known, batch.user_names
    if line.source != "person" or line.trust not in PERSON_TIERS:
        return False
    own = split_own_words(line.text).own
    if change.act in ("end", "delete"):
        return asks_to_end(own, known.text, user_names=names)
    text = change.text if change.act == "displace" else known.text
    for texts in ([own], stated):
        if not any(says_statement(one, text, user_names=names, instead_of=known.text) for one in texts):
            return False
    return change.act == "confirm" or gives_other_value(known.text, text, user_names=names)
