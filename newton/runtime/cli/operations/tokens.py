"""`newton tokens`: who may speak to the daemon for an agent."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.memory import hygiene
from newton.runtime.access import tokens
from newton.runtime.access.tokens import AgentToken, TokenScope
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

SHORT_ID_LENGTH = (
    8  # characters of an id: its beginning is the time it was made, and tells tokens of one day apart poorly
)


async def create_token(
    name: Annotated[str, Parameter(help="What it is for, such as the machine or the program.")],
    *,
    scope: Annotated[
        TokenScope, Parameter(help="read asks; write remembers, decides and talks too; admin also forgets and erases.")
    ] = "write",
    days: Annotated[int | None, Parameter(help="Ends after so many days; without it, only when it is revoked.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token for programs that speak to `newton serve`. It is shown this once and kept nowhere.

    Example: newton tokens create laptop --scope read --days 30
    """
    chosen, name = load_settings(agent), hygiene.clean_name(name, what="name")
    async with open_newton(chosen) as newton:
        now = newton.scope.now()
        ends = None if days is None else now + timedelta(days=days)
        async with newton.scope.transaction() as tx:
            text = await tokens.create_token(
                tx, agent_id=newton.scope.agent_id, name=name, scope=scope, now=now, expires_at=ends
            )
    if json:
        formatting.print_json(
            {"token": text, "name": name, "scope": scope, "agent": chosen.agent, "expires_at": _to_json_value(ends)}
        )
    else:
        say(text)
        formatting.print_notice(f"It speaks for {chosen.agent} and may {scope}. Keep it: it is not shown again.")


async def list_tokens(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the tokens of an agent, those that have ended too.

    Example: newton tokens list
    """
    async with open_newton(load_settings(agent)) as newton:
        now = newton.scope.now()
        async with newton.scope.transaction() as tx:
            known = await tokens.list_tokens(tx, agent_id=newton.scope.agent_id)
    if json:
        formatting.print_json([_token_to_json(one) for one in known])
    elif not known:
        say("No tokens. `newton tokens create NAME` makes one.")
    for one in () if json else known:
        used = f"used {one.used_at:%Y-%m-%d %H:%M}" if one.used_at else "never used"
        say(
            f"{one.token_id.hex[-SHORT_ID_LENGTH:]}  {one.name:<20} {one.scope:<6} {_format_state(one, now):<22} {used}"
        )


async def revoke_token(
    token: Annotated[str, Parameter(help="Its name, or the end of its id.")],
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """End a token at once.

    Example: newton tokens revoke laptop
    """
    async with open_newton(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        ended = await tokens.revoke_token(tx, token, agent_id=newton.scope.agent_id, now=newton.scope.now())
    if json:
        formatting.print_json(_token_to_json(ended))
    else:
        say(f"{ended.name} speaks for nobody any more.")


def _format_state(token: AgentToken, now: datetime) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if token.expires_at is None:
        return "in use"
    return f"{'until' if token.expires_at > now else 'ended'} {token.expires_at:%Y-%m-%d}"


def _token_to_json(token: AgentToken) -> dict[str, object]:
    return {name: _to_json_value(value) for name, value in token._asdict().items()}


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
