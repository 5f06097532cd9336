"""Tokens: found by their hash alone, for one agent, until they end."""

import base64
import re
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.db.pool import Tx
from newton.errors import InputError, NotFoundError
from newton.ids import derive_agent_id, new_id
from newton.runtime.access import tokens
from newton.runtime.access.operator_token import load_or_create_token
from newton.runtime.access.token_text import decode, encode
from newton.runtime.access.tokens import TokenClaims, TokenDraft
from tests.support import ANA, NOON


async def made(tx: Tx, draft: TokenDraft = TokenDraft("laptop")) -> str:  # noqa: B008 - it is immutable
    return await tokens.create_token(tx, draft, agent_id=ANA, now=NOON)


async def bearer(tx: Tx, text: str, *, after: timedelta = timedelta()) -> TokenClaims | None:
    return await tokens.verify_token(tx, text, now=NOON + after)


async def test_a_token_says_its_agent_and_its_scope(tx: Tx) -> None:
    text = await made(tx)
    assert await bearer(tx, text) == TokenClaims(ANA, "ana", "write", name="laptop")
    stored = await tx.fetchrow("select * from runtime.tokens")
    assert text not in repr(stored), "its words are kept nowhere"


async def test_a_token_with_one_other_letter_is_none(tx: Tx) -> None:
    text = await made(tx)
    assert await bearer(tx, text[:-6] + ("A" if text[-6] != "A" else "B") + text[-5:]) is None


async def test_a_double_click_selects_a_whole_token(tx: Tx, tmp_path: Path) -> None:
    for number in range(20):
        text = await made(tx, TokenDraft(f"laptop {number}"))
        assert re.fullmatch(r"nwt_[0-9A-Za-z]{86}", text) and await bearer(tx, text)
        operator = load_or_create_token(tmp_path / str(number))
        assert (
            re.fullmatch(r"nwo_[0-9A-Za-z]{43}", operator) and load_or_create_token(tmp_path / str(number)) == operator
        )


async def test_a_token_in_base64_of_a_former_version_stays_valid(tx: Tx) -> None:
    packed = ANA.bytes + new_id().bytes + bytes(range(200, 232))
    text = tokens.PREFIX + base64.urlsafe_b64encode(packed).decode()
    draft = TokenDraft("laptop")._asdict() | {"token_id": UUID(bytes=packed[16:32]), "hash": tokens.hash_token(text)}
    await tokens.SQL["insert_token"].execute(tx, agent_id=ANA, now=NOON, **draft)
    claims = await bearer(tx, text)
    assert claims and claims.agent_id == ANA
    assert await bearer(tx, text.replace("=", "")) is None


@given(data=st.binary(min_size=0, max_size=70))
def test_letters_and_digits_stand_for_bytes(data: bytes) -> None:
    text = encode(data)
    assert decode(text, len(data)) == data and text.isalnum() | (not data)
    assert decode(text + "0", len(data)) is None and decode(text[1:] + "_", len(data)) is None
    assert decode("Z" * len(text), len(data)) is None or not data


@pytest.mark.parametrize("text", ["", "nwt_", "nwt_short", "nwo_" + "A" * 86, "nwt_" + "é" * 86, "nwt_" + "Z" * 86])
def test_what_is_no_token_names_no_agent(text: str) -> None:
    assert tokens.parse_token_ids(text) is None


async def test_a_token_ends_when_it_expires_or_is_revoked(tx: Tx) -> None:
    text = await made(tx, TokenDraft("laptop", expires_at=NOON + timedelta(days=1)))
    assert await bearer(tx, text)
    assert await bearer(tx, text, after=timedelta(days=1)) is None
    other = await made(tx, TokenDraft("phone"))
    await tokens.revoke_token(tx, "phone", agent_id=ANA, now=NOON)
    assert await bearer(tx, other) is None
    with pytest.raises(NotFoundError):
        await tokens.revoke_token(tx, "phone", agent_id=ANA, now=NOON)
    with pytest.raises(InputError):
        await made(tx, TokenDraft("laptop", expires_at=NOON))


async def test_its_last_use_is_known_to_the_minute(tx: Tx) -> None:
    text = await made(tx)
    for seconds in (0, 30, 90):
        await bearer(tx, text, after=timedelta(seconds=seconds))
    (token,) = await tokens.list_tokens(tx, agent_id=ANA)
    assert token.used_at == NOON + timedelta(seconds=90)
    assert isinstance(token.token_id, UUID)


async def test_to_ask_for_a_token_of_another_agent_opens_nothing_of_it(tx: Tx) -> None:
    mine = await made(tx)
    ids = derive_agent_id("ben").bytes + new_id().bytes + bytes(32)
    assert await bearer(tx, tokens.PREFIX + base64.urlsafe_b64encode(ids).decode()) is None
    assert await tx.fetchval("select current_setting('newton.agent_id')") == str(ANA)
    assert await bearer(tx, mine)
