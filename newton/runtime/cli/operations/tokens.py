"""Commands `newton tokens`: create, list and revoke access tokens for the API of the daemon."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.errors import InputError
from newton.heart.speakers import Speaker
from newton.memory import hygiene
from newton.runtime.access import tokens
from newton.runtime.access.tokens import MAX_USERS, AgentToken, TokenDraft, TokenScope, UserPolicy
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

USER_POLICIES: dict[UserPolicy, str] = {"per_user": "a memory per user", "shared": "users share one memory"}
SHORT_ID_LENGTH = 8  # the end of an id; its beginning is a timestamp, similar for all tokens of a day


async def create_token(
    name: Annotated[str, Parameter(help="Name of the token, such as the client or machine that uses it.")],
    *,
    scope: Annotated[
        TokenScope,
        Parameter(
            help="Scope: read permits queries only; write also storing, deciding and chats; admin also deletions."
        ),
    ] = "write",
    speaker: Annotated[
        Speaker,
        Parameter(
            name="--for",
            help="Who speaks through it: person (a person's own tool), app (a program through which persons talk) or"
            " model (an agent; every word is its own).",
        ),
    ] = "app",
    days: Annotated[int | None, Parameter(help="Days until the token expires (default: it never expires).")] = None,
    per_user: Annotated[
        bool,
        Parameter(
            negative=(), help="Give each user that a request names (`user` or X-Newton-User) a memory of their own."
        ),
    ] = False,
    shared_users: Annotated[
        bool, Parameter(negative=(), help="Let all users that requests name share the memory of the agent.")
    ] = False,
    max_users: Annotated[
        int | None,
        Parameter(help=f"With --per-user, add new users up to this number of the agent (default: {MAX_USERS})."),
    ] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Create a token for clients of `newton serve`. The token is printed once; only its hash is stored.

    Without --per-user or --shared-users, a token is for one user: requests that name a second user are refused. With
    --project NAME, it is for this project of the agent alone.

    Over MCP, every token speaks for a model. docs/tokens.md says which token to give to whom.

    Example: newton tokens create laptop --scope read --days 30
    """
    if per_user and shared_users:
        raise InputError("--per-user and --shared-users exclude each other.", hint="Give --per-user or --shared-users.")
    users: UserPolicy | None = "per_user" if per_user else "shared" if shared_users else None
    settings, name = load_settings(agent), hygiene.clean_name(name, what="name")
    if settings.project and per_user:
        hint = "Omit --project: with a token for users, each request names the project of its user."
        raise InputError("--per-user and --project exclude each other.", hint=hint)
    async with open_agent(settings, on_new_agent=formatting.print_new_agent if settings.project else None) as newton:
        now = newton.scope.now()
        expires_at = None if days is None else now + timedelta(days=days)
        async with newton.scope.transaction() as tx:
            draft = TokenDraft(name, scope, expires_at, users, max_users, speaker)
            text = await tokens.create_token(tx, draft, agent_id=newton.scope.agent_id, now=now)
    if json:
        formatting.print_json(
            {
                "token": text,
                "name": name,
                "scope": scope,
                "agent": settings.agent,
                "project": newton.scope.project,
                "users": users,
                "max_users": max_users,
                "speaker": speaker,
                "expires_at": _to_json_value(expires_at),
            }
        )
    else:
        say(text)
        note = f", speaker {speaker}" + (f", {USER_POLICIES[users]}" if users else "")
        formatting.print_notice(f"Agent {settings.agent}, scope {scope}{note}. Store the token: it is not shown again.")


async def list_tokens(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the tokens of an agent, including expired and revoked ones.

    Example: newton tokens list
    """
    async with open_agent(load_settings(agent)) as newton:
        now = newton.scope.now()
        async with newton.scope.transaction() as tx:
            listed = await tokens.list_tokens(tx, agent_id=newton.scope.agent_id)
    if json:
        formatting.print_json(list(map(_token_to_json, listed)))
    elif not listed:
        say("No tokens. `newton tokens create NAME` creates one.")
    for one in () if json else listed:
        used = f"used {one.used_at:%Y-%m-%d %H:%M}" if one.used_at else "never used"
        used += f"  {USER_POLICIES[one.users]}" if one.users else ""
        say(
            f"{one.token_id.hex[-SHORT_ID_LENGTH:]}  {one.name:<20} {one.scope:<6} {one.speaker:<6}"
            f" {_format_state(one, now):<22} {used}"
        )


async def revoke_token(
    token: Annotated[str, Parameter(help="Name of the token, or the end of its id.")],
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Revoke a token immediately.

    Example: newton tokens revoke laptop
    """
    async with open_agent(load_settings(agent)) as newton, newton.scope.transaction() as tx:
        revoked = await tokens.revoke_token(tx, token, agent_id=newton.scope.agent_id, now=newton.scope.now())
    if json:
        formatting.print_json(_token_to_json(revoked))
    else:
        say(f"Revoked {revoked.name}.")


def _format_state(token: AgentToken, now: datetime) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if token.expires_at is None:
        return "valid"
    return f"{'until' if token.expires_at > now else 'expired'} {token.expires_at:%Y-%m-%d}"


def _token_to_json(token: AgentToken) -> dict[str, object]:
    return {name: _to_json_value(value) for name, value in token._asdict().items()}


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
