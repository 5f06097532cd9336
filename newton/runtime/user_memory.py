"""The separate memory of one user: an agent created on first use with the identity and censors of its parent agent."""

from dataclasses import replace

from newton.errors import InputError
from newton.heart import censors
from newton.heart.censors import CensorRule
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.runtime.wiring import AgentServices

MAX_USER_LENGTH = 500
ORIGIN = "user memory"
CREATION_REASON = "copied from the parent agent when the memory of the user was created"


def clean_user(user: str) -> str:
    """Return the name of a user without surrounding white space.

    Raises InputError unless the name is one line of 1 to `MAX_USER_LENGTH` printable characters.
    """
    cleaned = user.strip()
    if not cleaned or len(cleaned) > MAX_USER_LENGTH or not cleaned.isprintable():
        what = f"The name of the user is not one line of 1 to {MAX_USER_LENGTH} printable characters."
        raise InputError(what, hint="Send a stable id of the user, such as an account number.", param="user")
    return cleaned


async def create_user_memory(parent: AgentServices, user: str) -> str:
    """Return the name of the agent that stores the memory of a user; create this agent if it does not exist.

    A new agent gets a copy of the parent's identity and censors, so that the operator's rules apply from the first
    message.
    """
    name = agents.name_user_agent(parent.settings.agent, user)
    db, now = parent.scope.db, parent.scope.now()
    if await agents.exists(db, name):
        return name
    identity = await parent.identity(ORIGIN).get()
    listed = await parent.censors(ORIGIN).list_censors()
    scope = replace(parent.scope.at(ORIGIN, "user"), agent_id=derive_agent_id(name))
    async with scope.write() as (tx, ctx):
        if not await agents.insert_user_agent(tx, name, parent_id=parent.scope.agent_id, user=user, now=now):
            return name
        edit = IdentityEdit(ctx=ctx, reason=CREATION_REASON)
        for tenet in identity.tenets:
            await identity_store.add(tx, tenet.part, tenet.text, edit=edit, keep_conflicting=True)
        await censors.add_rules(tx, [_to_rule(one) for one in listed if one.is_in_force], ctx=ctx)
    return name


def _to_rule(censor: censors.CensorSummary) -> CensorRule:
    return CensorRule(
        trigger=censor.trigger,
        reason=censor.reason,
        match_mode=censor.match_mode,
        action=censor.action,
        domain=censor.domain,
        threshold=censor.threshold,
    )
