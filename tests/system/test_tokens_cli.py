"""`newton tokens`: a token is shown once, and ends at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.daemons import Daemon, daemon
from tests.system.typed import typed


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Daemon]:
    with daemon(home) as made:
        yield made


def made(home: Path, name: str, *flags: str) -> str:
    return json.loads(typed(home, "tokens", "create", name, *flags, "--json").stdout)["token"]


def remembers(served: Daemon, token: str, **headers: str) -> int:
    with served.client(token, **headers) as client:
        return client.post("/v1/memories", json={"content": "Cups are white."}).status_code


def test_a_token_speaks_for_its_agent_until_it_is_revoked(served: Daemon, home: Path) -> None:
    token = made(home, "laptop", "--agent", "ana")
    assert remembers(served, token) == 201
    assert remembers(served, token, **{"X-Newton-Agent": "ana"}) == 201
    assert remembers(served, token, **{"X-Newton-Agent": "bo"}) == 403
    assert "Cups are white" in typed(home, "recall", "cups", "--agent", "ana").stdout
    assert "Cups are white" not in typed(home, "recall", "cups", "--agent", "bo").stdout
    twice = typed(home, "tokens", "create", "laptop", "--agent", "ana")
    assert (twice.returncode, "newton tokens revoke laptop" in twice.stderr) == (2, True)
    ended = json.loads(typed(home, "tokens", "revoke", "laptop", "--agent", "ana", "--json").stdout)
    assert ended["name"] == "laptop" and ended["revoked_at"]
    assert remembers(served, token) == 401


def test_a_token_may_do_what_its_scope_says(served: Daemon, home: Path) -> None:
    assert remembers(served, made(home, "reader", "--scope", "read")) == 403
    assert remembers(served, made(home, "writer", "--scope", "write")) == 201


def test_what_is_listed_is_never_the_token(home: Path) -> None:
    token = made(home, "phone", "--days", "3")
    listed = typed(home, "tokens").stdout
    assert "phone" in listed
    assert token not in listed
    assert "until" in listed
    assert "phone" in {one["name"] for one in json.loads(typed(home, "tokens", "--json").stdout)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tokens", "revoke", "nobody"], "newton tokens list"),
        (["tokens", "create", "x", "--days", "0"], "Give a time to come"),
        (["tokens", "create", "x", "--scope", "all"], "read"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(home: Path, words: list[str], said: str) -> None:
    refused = typed(home, *words)
    assert refused.returncode == 2
    assert said in refused.stderr
