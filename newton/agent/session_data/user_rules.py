"""Rules and wishes in the lines of conversations: the user's own are in force at once, those of others are proposed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import session_speakers
from newton.dialogue.messages import StoredMessage
from newton.errors import ConflictError, NotFoundError, ProviderError
from newton.heart.identity import identity_store, user_rules
from newton.heart.identity.identity_store import IdentityEdit, MessageRef, TenetProposal
from newton.heart.identity.rule_plan import RulePlan, list_rule_texts, plan_rules
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import is_valid_line
from newton.heart.identity.user_rules import RuleChange, RuleSource
from newton.heart.identity.wish_models import load_rule_model
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.persons.person_store import read_user_names
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, Trust
from newton.providers.embedding import Vector

MAX_LINES = 50  # of one request

WriteScope = Callable[[], AbstractAsyncContextManager[tuple[Tx, LifecycleContext]]]


class RuleLine(NamedTuple):
    """A message with the role `user`: its text, its place and time, and its trust."""

    text: str
    source: RuleSource
    trust: Trust


@dataclass(frozen=True, slots=True)
class HeardRules:
    """The changes of the user's rules by new lines, and the rules of other speakers, which are only proposed.

    `is_unsure` means that more in the lines may concern the rules.
    """

    changes: tuple[RuleChange, ...] = ()
    proposed: tuple[TenetProposal, ...] = ()
    is_unsure: bool = False


NOTHING_HEARD = HeardRules()


async def hear_messages(scope: AgentScope, messages: Sequence[StoredMessage]) -> HeardRules:
    """Put the rules that newly stored messages of the user state in force, as `hear_rules` does; return the changes.

    More than MAX_LINES messages are a transcript and change nothing.
    """
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


async def hear_rules(
    scope: AgentScope, lines: Sequence[RuleLine], write: WriteScope, *, has_reader: bool = False
) -> HeardRules:
    """Put the rules that the user's lines state in force, lift those that they lift, and propose those of others.

    Return these changes. `write` opens the transaction. A line with text of a tool or the web changes nothing, and none
    that only asks not to keep something. With `has_reader`, a model reads the line too.
    """
    trusted_lines = [line for line in lines if line.trust not in UNTRUSTED_TIERS]
    heard = NOTHING_HEARD
    for line in trusted_lines:
        plan = await _plan(scope, line, has_reader=has_reader)
        heard = replace(heard, is_unsure=heard.is_unsure or plan.is_unsure)
        if plan.stated or plan.lifted:
            async with write() as (tx, ctx):
                heard = _join(heard, await _apply(tx, line, plan, ctx=ctx))
    return heard


async def _plan(scope: AgentScope, line: RuleLine, *, has_reader: bool) -> RulePlan:
    """Return the changes that a line makes to the rules in force; without vectors, only those that patterns find."""
    async with scope.transaction() as tx:
        rules = await user_rules.list_rules(tx, agent_id=scope.agent_id)
    vectors: dict[str, Vector] = {}
    if scope.embedder and scope.embedder.identity == load_rule_model().vector_model:
        texts = list_rule_texts(line.text)
        texts = [*texts, *(rule.text for rule in rules)] if texts else []
        with suppress(ProviderError):
            vectors = dict(zip(texts, await scope.embedder.embed(texts), strict=True)) if texts else {}
    plan = plan_rules(line.text, rules, vectors, said_on=line.source.day, has_reader=has_reader)
    is_valid = partial(is_valid_line, count_tokens=scope.count_tokens, said_on=line.source.day)
    return RulePlan(
        tuple(one for one in plan.stated if is_valid(one.part, one.text)),
        tuple(one for one in plan.lifted if one.new_text is None or is_valid(one.rule.part, one.new_text)),
        plan.is_unsure,
    )


async def _apply(tx: Tx, line: RuleLine, plan: RulePlan, *, ctx: LifecycleContext) -> HeardRules:
    """Put each rule in force, or propose it if the speaker is not the user or a line of another kind contradicts it.

    Only the user lifts rules.
    """
    edit, message = IdentityEdit(ctx=ctx), line.source.message
    user_names, _ = await read_user_names(tx, agent_id=ctx.agent_id)
    is_own = line.trust in PERSON_TIERS and await session_speakers.has_one_speaker(
        tx, agent_id=ctx.agent_id, session_id=message.session_id, user_names=user_names
    )
    changes, waiting = list[RuleChange](), list[StandingInstruction]()
    for rule, new_text in plan.lifted if is_own else ():
        with suppress(NotFoundError):  # another line lifted it meanwhile
            change = await user_rules.lift_rule(tx, [rule.tenet_id], new_text, source=line.source, edit=edit)
            changes += [change] if change else []
    for rule in plan.stated:
        try:
            if is_own and (change := await user_rules.apply_rule(tx, rule, source=line.source, edit=edit)):
                changes.append(change)
        except ConflictError:
            waiting.append(rule)
    waiting += [] if is_own else plan.stated
    waiting = [rule for rule in waiting if is_valid_line(rule.part, rule.text, ctx.count_tokens)]
    proposed = await identity_store.propose(tx, waiting, message_ref=message, edit=edit) if waiting else []
    for event in [*(["identity.changed"] if changes else []), *(["identity.proposed"] if proposed else [])]:
        publish(event, {}, agent_id=ctx.agent_id, now=ctx.now)
    return HeardRules(tuple(changes), tuple(proposed))


def _join(first: HeardRules, second: HeardRules) -> HeardRules:
    return HeardRules(
        (*first.changes, *second.changes), (*first.proposed, *second.proposed), first.is_unsure or second.is_unsure
    )
