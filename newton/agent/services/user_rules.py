"""Rules and wishes in the lines of conversations: the user's own are in force at once, those of others are proposed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple

from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import log
from newton.dialogue.messages import StoredMessage
from newton.errors import ConflictError
from newton.heart.identity import identity_store, user_rules
from newton.heart.identity.identity_store import IdentityEdit, MessageRef, TenetProposal
from newton.heart.identity.standing_instructions import StandingInstruction, detect_instructions
from newton.heart.identity.tenets import is_valid_line
from newton.heart.identity.user_rules import RuleChange, RuleSource
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.memory import PERSON_TIERS, Trust
from newton.memory.quarantine import UNTRUSTED_TIERS

MAX_LINES = 50  # of one request

WriteScope = Callable[[], AbstractAsyncContextManager[tuple[Tx, LifecycleContext]]]


class RuleLine(NamedTuple):
    """A message with the role `user`: its text, its place and time, and its trust."""

    text: str
    source: RuleSource
    trust: Trust = "user"


@dataclass(frozen=True, slots=True)
class HeardRules:
    """What lines changed in the user's rules, and what was proposed because its speaker is not the user."""

    changes: tuple[RuleChange, ...] = ()
    proposed: tuple[TenetProposal, ...] = ()


NOTHING_HEARD = HeardRules()


async def hear_messages(scope: AgentScope, messages: Sequence[StoredMessage]) -> HeardRules:
    """Do so for messages that were just stored; for none of more than MAX_LINES, which are a transcript."""
    lines = [
        RuleLine(
            one.message.content,
            RuleSource(message=MessageRef(one.session_id, one.position), said_at=one.message.said_at),
            one.message.trust,
        )
        for one in messages
        if one.message.role == "user"
    ]
    return await hear_rules(scope, lines, scope.write) if len(lines) <= MAX_LINES else NOTHING_HEARD


async def hear_rules(scope: AgentScope, lines: Sequence[RuleLine], write: WriteScope) -> HeardRules:
    """Put the rules that the user's lines state in force, lift those that they lift, and propose those of others.

    `write` opens the transaction. A line with text of a tool or the web changes nothing.
    """
    read = [(line, _find_rules(scope, line.text)) for line in lines if line.trust not in UNTRUSTED_TIERS]
    heard = NOTHING_HEARD
    for line, stated in read:
        if stated:
            async with write() as (tx, ctx):
                heard = _join(heard, await _apply(tx, line, stated, ctx=ctx))
    return heard


def _find_rules(scope: AgentScope, text: str) -> list[StandingInstruction]:
    return [one for one in detect_instructions(text) if is_valid_line(one.part, one.text, scope.count_tokens)]


async def _apply(tx: Tx, line: RuleLine, stated: Sequence[StandingInstruction], *, ctx: LifecycleContext) -> HeardRules:
    """Put each rule in force, or propose it if the speaker is not the user or a line of another kind contradicts it."""
    edit, message = IdentityEdit(ctx=ctx), line.source.message
    is_own = line.trust in PERSON_TIERS and await log.has_one_speaker(
        tx, agent_id=ctx.agent_id, session_id=message.session_id
    )
    changes, waiting = list[RuleChange](), list[StandingInstruction]()
    for rule in stated:
        try:
            if is_own and (change := await user_rules.apply_rule(tx, rule, source=line.source, edit=edit)):
                changes.append(change)
        except ConflictError:
            waiting.append(rule)
    waiting += [] if is_own else stated
    proposed = await identity_store.propose(tx, waiting, message_ref=message, edit=edit) if waiting else []
    for event in [*(["identity.changed"] if changes else []), *(["identity.proposed"] if proposed else [])]:
        publish(event, {}, agent_id=ctx.agent_id, now=ctx.now)
    return HeardRules(tuple(changes), tuple(proposed))


def _join(first: HeardRules, second: HeardRules) -> HeardRules:
    return HeardRules((*first.changes, *second.changes), (*first.proposed, *second.proposed))
