"""Rules and wishes that a user states in a conversation: they apply at once, until a later message lifts them.

They are tenets (lines of the identity) with the message as their source. Each change is a version of the identity, so a
roll-back undoes it. The caller must know that the message is the user's own line.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.errors import ConflictError, NotFoundError
from newton.heart.identity import identity_store as identity
from newton.heart.identity.identity_store import IdentityEdit, MessageRef
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import Identity, IdentityTenet, make_tenet


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSource:
    """The user's message that adds, lifts or changes a rule, and the time at which it was said."""

    message: MessageRef
    said_at: datetime

    @property
    def day(self) -> date:
        return self.said_at.astimezone(UTC).date()


class RuleChange(NamedTuple):
    """A change of the rules by a message: the rule that it added, if any, and the rules that it ended.

    `version` is that of the identity before the change.
    """

    added: IdentityTenet | None = None
    removed: tuple[IdentityTenet, ...] = ()
    version: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


async def list_rules(tx: Tx, *, agent_id: UUID) -> list[IdentityTenet]:
    """Return the rules and wishes of the user that hold now, the most important first."""
    current = await identity.read_identity(tx, agent_id=agent_id)
    return [tenet for tenet in current.by_priority if tenet.is_of_user]


async def apply_rule(tx: Tx, rule: StandingInstruction, *, source: RuleSource, edit: IdentityEdit) -> RuleChange:
    """Put a rule or wish in force, in place of the older ones of the user that contradict it.

    Nothing changes if it is in force already. Raises InputError for an invalid line, and ConflictError if the identity
    is full or a line that is not the user's contradicts the rule.
    """
    current = await identity.lock_and_read(tx, edit)
    if identity.find_same(current.tenets, rule.text):
        return RuleChange()
    conflicting = identity.find_conflicts(current, rule.text)
    if other := next((tenet for tenet in conflicting if not tenet.is_of_user), None):
        raise ConflictError(
            f"A line of the identity that is not the user's contradicts the rule: {other.text}.",
            hint="A person changes that line with `newton identity change`.",
        )
    return await _replace_rules(tx, current, conflicting, rule, source=source, edit=edit)


async def lift_rule(
    tx: Tx, rule_ids: Sequence[UUID], new_text: str | None = None, *, source: RuleSource, edit: IdentityEdit
) -> RuleChange:
    """End the rules of the user with these ids, or put one with the text `new_text` in their place.

    A rule that was stated later than the message is kept. Raises NotFoundError for an id that is not that of a rule of
    the user in force, and InputError for an invalid text.
    """
    current = await identity.lock_and_read(tx, edit)
    rules = {tenet.tenet_id: tenet for tenet in current.tenets if tenet.is_of_user}
    if unknown := [str(one) for one in rule_ids if one not in rules]:
        raise NotFoundError(f"There is no rule {unknown[0]} of the user.", hint="`newton identity` lists the rules.")
    lifted = [rules[one] for one in dict.fromkeys(rule_ids) if (rules[one].said_on or source.day) <= source.day]
    if not lifted:
        return RuleChange()
    changed = StandingInstruction(lifted[0].part, new_text) if new_text else None
    return await _replace_rules(tx, current, lifted, changed, source=source, edit=edit)


async def _replace_rules(
    tx: Tx,
    current: Identity,
    removed: Sequence[IdentityTenet],
    rule: StandingInstruction | None,
    *,
    source: RuleSource,
    edit: IdentityEdit,
) -> RuleChange:
    """Store a version of the identity without the rules `removed`, and with the new rule, if any."""
    remaining = current._replace(tenets=tuple(tenet for tenet in current.tenets if tenet not in removed))
    standing = identity.tenet_ids(remaining)
    if rule is None:
        await identity.insert_version(tx, "removed", removed[0].tenet_id, standing, edit=edit)
        return RuleChange(removed=tuple(removed), version=current.version)
    identity.ensure_below_limit(remaining)
    tenet = make_tenet(rule.part, rule.text, edit.ctx.count_tokens, said_on=source.day)
    await identity.resolve_proposals(tx, tenet, "ACCEPTED", edit=edit)
    await identity.reject_conflicting(tx, tenet, edit=edit)
    said_ctx = replace(edit.ctx, now=source.said_at)
    await identity.insert_tenet(tx, tenet, ctx=said_ctx, message_ref=source.message)
    change = "changed" if removed else "added"
    await identity.insert_version(tx, change, tenet.tenet_id, [*standing, tenet.tenet_id], edit=edit)
    return RuleChange(tenet, tuple(removed), current.version)
