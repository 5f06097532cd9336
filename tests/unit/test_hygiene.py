"""What is taken out of a text before it is kept, and what is refused."""

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.errors import InputError
from newton.memory.hygiene import MAX_CHARACTERS, clean, redacted

SECRETS = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
    "aws-key": "AKIAIOSFODNN7EXAMPLE",
    "github-token": "ghp_" + "a1B2c3D4e5" * 4,
    "gitlab-token": "glpat-" + "x1_y2-Z3w4" * 2,
    "api-key": "sk-proj-" + "Zz9" * 12,
    "slack-token": "xoxb-123456789012-abcdefGHIJ",
    "google-key": "AIza" + "SyD-9_aBcDe" * 3 + "xy",
    "stripe-key": "sk_live_" + "4eC39HqLyjWDarjt",
    "npm-token": "npm_" + "a1B2c3" * 6,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "bearer-token": "Bearer " + "abcDEF123._~+/-" * 2,
    "url-password": "postgres://ana:hunter2@db.example/x",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "my key is {}, keep it", "a\n{}\nb", "({})", '"{}"'])
def test_a_secret_is_replaced_wherever_it_stands(kind: str, around: str) -> None:
    secret = SECRETS[kind]
    kept = clean(around.format(secret))
    assert f"[REDACTED:{kind}]" in kept
    core = "hunter2" if kind == "url-password" else secret
    assert core not in kept
    if kind != "url-password":
        assert kept == around.format(f"[REDACTED:{kind}]"), "nothing around it is taken"


@pytest.mark.parametrize(
    "text",
    [
        "ask-me-anything-about-risk-assessment",
        "The bearer of good news arrived at noon yesterday, smiling",
        "see https://example.org/a:b and mail ana@example.org",
        "https://example.org:8080/path",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "sk-short",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "AKIA is the prefix of such keys",
        "6f2f1c9e-5d0b-5c55-9a53-2d0a6c1f7e11",
    ],
)
def test_what_is_no_secret_stays_word_for_word(text: str) -> None:
    assert clean(text) == text


@given(st.text(alphabet=string.ascii_letters + " .,\n", min_size=1).filter(str.strip))
def test_plain_prose_is_never_changed(text: str) -> None:
    assert clean(text) == text


@given(st.lists(st.sampled_from(sorted(SECRETS.values())) | st.text(max_size=20), max_size=6).map(" ".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u2003"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="The title is empty"):
        clean(text, what="title")


def test_the_longest_text_is_taken_and_a_longer_one_refused() -> None:
    assert len(clean("a " * (MAX_CHARACTERS // 2))) == MAX_CHARACTERS
    with pytest.raises(InputError, match="1,000,001 characters; 1,000,000 is the most"):
        clean("a" * (MAX_CHARACTERS + 1))


def test_what_postgresql_cannot_keep_is_refused() -> None:
    with pytest.raises(InputError, match="NUL"):
        clean("a\0b")
    with pytest.raises(InputError, match="half a character"):
        clean("a\ud800b")


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----" * 2_000,
        "eyJ" + "a" * 100_000,
        "eyJaaaaaaaaaaa." * 7_000,
        "://" * 50_000,
        "bearer " * 20_000,
        "a:" * 50_000 + "@",
        "://a:" + "b" * 100_000,
        "sk-" * 50_000,
    ],
    ids=["key heads", "one jwt head", "jwt heads", "slashes", "bearers", "colons", "long password", "sk"],
)
def test_a_text_made_to_be_slow_is_not(hostile: str) -> None:
    started = time.perf_counter()
    redacted(hostile)
    assert time.perf_counter() - started < 2
