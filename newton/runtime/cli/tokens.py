"""`newton tokens`: who may speak to the daemon for an agent."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.memory import hygiene
from newton.runtime.access import tokens
from newton.runtime.access.tokens import Scope, Token
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

LAST = 8  # characters of an id: its beginning is the time it was made, and tells tokens of one day apart poorly


async def create(
    name: Annotated[str, Parameter(help="What it is for, such as the machine or the program.")],
    *,
    scope: Annotated[
        Scope, Parameter(help="read asks; write remembers, decides and talks too; admin also forgets and erases.")
    ] = "write",
    days: Annotated[int | None, Parameter(help="Ends after so many days; without it, only when it is revoked.")] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Make a token for programs that speak to `newton serve`. It is shown this once and kept nowhere.

    Example: newton tokens create laptop --scope read --days 30
    """
    chosen, name = settings(agent), hygiene.name(name, what="name")
    async with opened(chosen) as newton:
        now = newton.scope.now()
        ends = None if days is None else now + timedelta(days=days)
        async with newton.scope.transaction() as tx:
            text = await tokens.make(
                tx, agent_id=newton.scope.agent_id, name=name, scope=scope, now=now, expires_at=ends
            )
    if json:
        show.as_json({"token": text, "name": name, "scope": scope, "agent": chosen.agent, "expires_at": _told(ends)})
    else:
        say(text)
        show.notice(f"It speaks for {chosen.agent} and may {scope}. Keep it: it is not shown again.")


async def list_(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the tokens of an agent, those that have ended too.

    Example: newton tokens list
    """
    async with opened(settings(agent)) as newton:
        now = newton.scope.now()
        async with newton.scope.transaction() as tx:
            known = await tokens.listed(tx, agent_id=newton.scope.agent_id)
    if json:
        show.as_json([_plain(one) for one in known])
    elif not known:
        say("No tokens. `newton tokens create NAME` makes one.")
    for one in () if json else known:
        used = f"used {one.used_at:%Y-%m-%d %H:%M}" if one.used_at else "never used"
        say(f"{one.token_id.hex[-LAST:]}  {one.name:<20} {one.scope:<6} {_state(one, now):<22} {used}")


async def revoke(
    token: Annotated[str, Parameter(help="Its name, or the end of its id.")],
    *,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """End a token at once.

    Example: newton tokens revoke laptop
    """
    async with opened(settings(agent)) as newton, newton.scope.transaction() as tx:
        ended = await tokens.revoke(tx, token, agent_id=newton.scope.agent_id, now=newton.scope.now())
    if json:
        show.as_json(_plain(ended))
    else:
        say(f"{ended.name} speaks for nobody any more.")


def _state(one: Token, now: datetime) -> str:
    if one.revoked_at:
        return f"revoked {one.revoked_at:%Y-%m-%d}"
    if one.expires_at is None:
        return "in use"
    return f"{'until' if one.expires_at > now else 'ended'} {one.expires_at:%Y-%m-%d}"


def _plain(one: Token) -> dict[str, object]:
    return {name: _told(value) for name, value in one._asdict().items()}


def _told(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
