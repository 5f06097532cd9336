"""Tokens of agents: made once and shown once, found again by their hash, revoked at once."""

import base64
import binascii
import hashlib
import secrets
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id

SQL = load("newton.runtime.access", "tokens.sql")

TokenScope = Literal["read", "write", "admin"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)  # each may do what those before it may

PREFIX = "nwt_"
SECRET_BYTES = 32


class AgentToken(NamedTuple):
    """What is known of a token; never its words."""

    token_id: UUID
    name: str
    scope: TokenScope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


class TokenClaims(NamedTuple):
    """Whom a token speaks for, and what it may do."""

    agent_id: UUID
    agent: str
    scope: TokenScope


async def create_token(
    tx: Tx, *, agent_id: UUID, name: str, scope: TokenScope, now: datetime, expires_at: datetime | None = None
) -> str:
    """A new token's words, shown this once: only their hash is kept. Raises InputError for an end in the past,
    and ConflictError for a name that another token in use has."""
    if expires_at is not None and expires_at <= now:
        raise InputError("The token would have expired already.", hint="Give a time to come, or none.")
    token_id = new_id()
    text = _encode_token(agent_id, token_id, secrets.token_bytes(SECRET_BYTES))
    made = await SQL["insert_token"].fetch_one(
        tx,
        agent_id=agent_id,
        token_id=token_id,
        name=name,
        scope=scope,
        hash=hash_token(text),
        now=now,
        expires_at=expires_at,
    )
    if made is None:
        raise ConflictError(
            f"There is a token {name!r} in use.", hint=f"Name it otherwise, or end that: `newton tokens revoke {name}`."
        )
    return text


def parse_token_ids(text: str) -> tuple[UUID, UUID] | None:
    """The agent and the id that a token names, or None for what is no token. Nothing is proven by them."""
    if not text.startswith(PREFIX):
        return None
    try:
        packed = base64.b64decode(text.removeprefix(PREFIX), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(packed) != 32 + SECRET_BYTES:
        return None
    return UUID(bytes=packed[:16]), UUID(bytes=packed[16:32])


async def verify_token(tx: Tx, text: str, *, now: datetime) -> TokenClaims | None:
    """Whom the token speaks for; None when it is none, unknown, expired or revoked. Asked in a unit of work of its
    agent, or as a statement of its own."""
    claimed = parse_token_ids(text)
    if claimed is None:
        return None
    agent_id, token_id = claimed
    row = await SQL["authenticate"].fetch_one(tx, agent_id=agent_id, token_id=token_id, hash=hash_token(text), now=now)
    return TokenClaims(agent_id, *row) if row else None


async def list_tokens(tx: Tx, *, agent_id: UUID) -> list[AgentToken]:
    """Every token of the agent, the oldest first."""
    return [AgentToken(*row) for row in await SQL["list_tokens"].fetch_all(tx, agent_id=agent_id)]


async def revoke_token(tx: Tx, token_ref: str, *, agent_id: UUID, now: datetime) -> AgentToken:
    """Ends a token, named by the beginning of its id or by its name. Raises NotFoundError and InputError."""
    usable = [one for one in await list_tokens(tx, agent_id=agent_id) if one.revoked_at is None]
    meant = [
        one for one in usable if token_ref == one.name or (len(token_ref) >= 4 and one.token_id.hex.endswith(token_ref))
    ]
    if not meant:
        raise NotFoundError(f"There is no token {token_ref!r} in use.", hint="`newton tokens list` shows them.")
    if len(meant) > 1:
        raise InputError(f"{token_ref!r} means {len(meant)} tokens.", hint="Give the end of its id instead.")
    await SQL["revoke_token"].execute(tx, agent_id=agent_id, token_id=meant[0].token_id, now=now)
    return meant[0]._replace(revoked_at=now)


def hash_token(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _encode_token(agent_id: UUID, token_id: UUID, secret: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(agent_id.bytes + token_id.bytes + secret).decode()
