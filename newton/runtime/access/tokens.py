"""Access tokens of agents. A token is shown once when it is created, stored as a hash, and can be revoked."""

import base64
import binascii
import hashlib
import secrets
import shlex
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart.speakers import Speaker
from newton.ids import new_id
from newton.runtime.access.token_text import decode, encode

SQL = load("newton.runtime.access", "tokens.sql")

TokenScope = Literal["read", "write", "admin"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)  # each scope includes those before it
UserPolicy = Literal["per_user", "shared"]

PREFIX = "nwt_"
MAX_USERS = 1_000  # with a memory of their own, unless the token says another number
SECRET_BYTES = 32
PACKED_BYTES = 16 + 16 + SECRET_BYTES  # the ids of the agent and the token, and the secret


class AgentToken(NamedTuple):
    """A stored token without its secret. `users` is the user policy, explained in `TokenClaims`.

    `max_users` is how many users with a memory of their own the agent may have for this token to add one; None stands
    for `MAX_USERS`.
    `speaker` is who talks through it: a person, an app that relays persons, or a model.
    """

    token_id: UUID
    name: str
    scope: TokenScope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    users: UserPolicy | None
    max_users: int | None
    speaker: Speaker


class TokenClaims(NamedTuple):
    """The agent, the scope and the user policy of a verified token.

    `users` says how the token treats users that requests name: "per_user" gives each user a separate memory, and with
    "shared" all share one. With None the token serves only one user, the first that a request names; `first_user` is
    the hash of that name, or None before.
    """

    agent_id: UUID
    agent: str
    scope: TokenScope
    users: UserPolicy | None = None
    first_user: bytes | None = None
    name: str = ""
    speaker: Speaker = "app"


class TokenDraft(NamedTuple):
    """The options of a token to create. `users` and `max_users` are explained in `AgentToken`."""

    name: str
    scope: TokenScope = "write"
    expires_at: datetime | None = None
    users: UserPolicy | None = None
    max_users: int | None = None
    speaker: Speaker = "app"


async def create_token(tx: Tx, draft: TokenDraft, *, agent_id: UUID, now: datetime) -> str:
    """Create a token and return its text; the database keeps only a hash of it.

    Raises InputError for an expiry in the past, and for a wrong number of users; ConflictError if
    an active token of the agent has this name.
    """
    if draft.max_users is not None and (draft.users != "per_user" or draft.max_users < 1):
        what = "The number of users is at least 1, and only for a token that keeps a memory for each user."
        raise InputError(what, hint="Give --per-user (`users`: `per_user`) and a number, or omit both.")
    if draft.expires_at is not None and draft.expires_at <= now:
        raise InputError(
            "The expiry of the token is in the past.", hint="Give a time in the future, or omit the expiry."
        )
    token_id = new_id()
    packed = agent_id.bytes + token_id.bytes + secrets.token_bytes(SECRET_BYTES)
    text = PREFIX + encode(packed)
    row = {"token_id": token_id, "hash": hash_token(text), **draft._asdict()}
    if await SQL["insert_token"].fetch_one(tx, agent_id=agent_id, now=now, **row) is None:
        hint = f"Choose another name, or run `newton tokens revoke {shlex.quote(draft.name)}`."
        raise ConflictError(f"There is already an active token with the name {draft.name!r}.", hint=hint)
    return text


def parse_token_ids(text: str) -> tuple[UUID, UUID] | None:
    """Return the agent id and the token id encoded in the text of a token; None if the text is malformed.

    Does not verify the token.
    """
    if not text.startswith(PREFIX):
        return None
    body = text.removeprefix(PREFIX)
    packed = decode(body, PACKED_BYTES) or _decode_base64(body)
    if packed is None or len(packed) != PACKED_BYTES:
        return None
    return UUID(bytes=packed[:16]), UUID(bytes=packed[16:32])


def _decode_base64(body: str) -> bytes | None:
    """Return the bytes of a token that was created when tokens were written in URL-safe base64."""
    try:
        return base64.b64decode(body, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


async def verify_token(tx: Tx, text: str, *, now: datetime) -> TokenClaims | None:
    """Return the claims of a token; None if the token is malformed, unknown, expired or revoked.

    `tx` is a transaction of the token's agent, or a connection from `Database.single_statement`.
    """
    ids = parse_token_ids(text)
    if ids is None:
        return None
    agent_id, token_id = ids
    row = await SQL["authenticate"].fetch_one(tx, agent_id=agent_id, token_id=token_id, hash=hash_token(text), now=now)
    return TokenClaims(agent_id, *row) if row else None


async def bind_user(tx: Tx, text: str, user: str) -> bool:
    """Make `user` the only user of a token that has none yet. Return False if the token has another user already.

    The caller must have verified the token `text`.
    """
    ids = parse_token_ids(text)
    assert ids is not None, "the token is verified"
    row = await SQL["bind_user"].fetch_one(tx, agent_id=ids[0], token_id=ids[1], first_user=hash_user(user))
    return row is not None and row["first_user"] == hash_user(user)


async def read_max_users(tx: Tx, text: str) -> int:
    """Return how many users with a memory of their own the agent of a verified token may have for it to add one."""
    ids = parse_token_ids(text)
    assert ids is not None, "the token is verified"
    row = await SQL["read_max_users"].fetch_one(tx, agent_id=ids[0], token_id=ids[1])
    return (row["max_users"] if row else None) or MAX_USERS


async def list_tokens(tx: Tx, *, agent_id: UUID) -> list[AgentToken]:
    """Return all tokens of the agent, oldest first, including revoked and expired tokens."""
    return [AgentToken(*row) for row in await SQL["list_tokens"].fetch_all(tx, agent_id=agent_id)]


async def revoke_token(tx: Tx, token_ref: str, *, agent_id: UUID, now: datetime) -> AgentToken:
    """Revoke the active token with this name or with an id that ends in `token_ref` (at least 4 digits); return it.

    Raises NotFoundError if no active token matches, and InputError if several match.
    """
    active = [one for one in await list_tokens(tx, agent_id=agent_id) if one.revoked_at is None]
    suffix = token_ref if len(token_ref) >= 4 else None
    matches = [one for one in active if token_ref == one.name or (suffix and one.token_id.hex.endswith(suffix))]
    if not matches:
        raise NotFoundError(f"There is no active token {token_ref!r}.", hint="`newton tokens list` shows the tokens.")
    if len(matches) > 1:
        raise InputError(f"{token_ref!r} matches {len(matches)} tokens.", hint="Give a longer end of the token's id.")
    await SQL["revoke_token"].execute(tx, agent_id=agent_id, token_id=matches[0].token_id, now=now)
    return matches[0]._replace(revoked_at=now)


def hash_token(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def hash_user(user: str) -> bytes:
    return hashlib.sha256(user.encode()).digest()
