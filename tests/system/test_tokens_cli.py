"""`newton tokens`: a token is shown once, and ends at once."""

import json
from pathlib import Path

import pytest

from tests.system.daemons import Daemon
from tests.system.typed import create_agents, typed


def made(house: Path, name: str, *flags: str) -> str:
    return json.loads(typed(house, "tokens", "create", name, *flags, "--json").stdout)["token"]


def remembers(served: Daemon, token: str, **headers: str) -> int:
    with served.client(token, **headers) as client:
        return client.post("/v1/memories", json={"content": "Cups are white."}).status_code


def test_a_token_speaks_for_its_agent_until_it_is_revoked(served: Daemon, house: Path) -> None:
    create_agents(house, "tia", "tom")
    token = made(house, "laptop", "--agent", "tia")
    assert remembers(served, token) == 201
    assert remembers(served, token, **{"X-Newton-Agent": "tia"}) == 201
    assert remembers(served, token, **{"X-Newton-Agent": "tom"}) == 403
    assert "Cups are white" in typed(house, "recall", "cups", "--agent", "tia").stdout
    assert "Cups are white" not in typed(house, "recall", "cups", "--agent", "tom").stdout
    twice = typed(house, "tokens", "create", "laptop", "--agent", "tia")
    assert (twice.returncode, "newton tokens revoke laptop" in twice.stderr) == (2, True)
    ended = json.loads(typed(house, "tokens", "revoke", "laptop", "--agent", "tia", "--json").stdout)
    assert ended["name"] == "laptop" and ended["revoked_at"]
    assert remembers(served, token) == 401


def test_a_token_may_do_what_its_scope_says(served: Daemon, house: Path) -> None:
    assert remembers(served, made(house, "reader", "--scope", "read")) == 403
    assert remembers(served, made(house, "writer", "--scope", "write")) == 201


def test_what_is_listed_is_never_the_token(house: Path) -> None:
    token = made(house, "phone", "--days", "3")
    listed = typed(house, "tokens").stdout
    assert "phone" in listed
    assert token not in listed
    assert "until" in listed
    assert "phone" in {one["name"] for one in json.loads(typed(house, "tokens", "--json").stdout)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tokens", "revoke", "nobody"], "newton tokens list"),
        (["tokens", "create", "x", "--days", "0"], "Give a time in the future"),
        (["tokens", "create", "x", "--scope", "all"], "read"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(house: Path, words: list[str], said: str) -> None:
    refused = typed(house, *words)
    assert refused.returncode == 2
    assert said in refused.stderr
