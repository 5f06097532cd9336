"""Newton's own secrets are recognized by value, also disguised, and files that have them are passed over."""

import base64
import codecs
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from newton.content.document_folders import SECRET, find_documents
from newton.memory.redaction.own_secrets import OWN_SECRETS, contains_own_secret, redact_own_secrets
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.redaction.tally import redaction_tally
from newton.runtime.access.browser_sessions import BrowserSessions, SignInGrant
from newton.runtime.access.operator_token import load_or_create_token
from newton.runtime.access.secret_values import SecretFiles, register_secrets
from newton.runtime.access.token_text import encode
from newton.setting_types import McpServerSettings
from newton.settings import Settings

MARK = "[REDACTED:newton-secret]"
DISGUISES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "reversed": lambda value: value[::-1],
    "spaced": " ".join,
    "hyphens": lambda value: "-".join(value[start : start + 3] for start in range(0, len(value), 3)),
    "lines": lambda value: "\n".join(value[start : start + 20] for start in range(0, len(value), 20)),
    "invisible": "\u200b".join,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 with text before": lambda value: base64.b64encode(f"it is {value} ok".encode()).decode(),
    "base64 of URLs, shifted": lambda value: base64.urlsafe_b64encode(f"-{value}".encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "hex in pairs": lambda value: value.encode().hex(":").upper(),
}
OF_KNOWN_VALUES: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "rot13": lambda value: codecs.encode(value, "rot13"),
    "full width": lambda value: "".join(chr(ord(letter) + 0xFEE0) for letter in value),
    "half of it": lambda value: value[: len(value) * 2 // 3],
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for group in ("settings", "sign-in"):
        OWN_SECRETS.replace(group, ())


def make_settings(home: Path, **fields: object) -> Settings:
    return Settings.model_validate({"data_dir": str(home), **fields})


def leaks(value: str, text: str) -> bool:
    return redact_own_secrets(text) == text or value[:16] in redact_own_secrets(text)


@pytest.mark.parametrize("name", [*DISGUISES, *OF_KNOWN_VALUES])
def test_the_operator_token_and_keys_are_recognized_in_any_writing(tmp_path: Path, name: str) -> None:
    key = "sk-ant-api03-" + secrets.token_urlsafe(48)
    token = load_or_create_token(tmp_path)
    register_secrets(make_settings(tmp_path, anthropic_api_key=SecretStr(key)), {})
    write = {**DISGUISES, **OF_KNOWN_VALUES}[name]
    assert [value for value in (token, key) if leaks(value, f"see {write(value)} here")] == []
    assert contains_own_secret(write(token)) and MARK in redact_secrets(write(key))


@pytest.mark.parametrize("name", DISGUISES)
def test_a_token_of_an_agent_is_recognized_by_its_form(name: str) -> None:
    token = "nwt_" + encode(secrets.token_bytes(64))
    assert redact_own_secrets(f"see {DISGUISES[name](token)} here") == "see [REDACTED:newton-token] here"


def test_the_database_password_is_recognized_alone_and_no_word_is(tmp_path: Path) -> None:
    url = "postgresql://newton:p%40ss!W0rd9@db/newton"
    register_secrets(make_settings(tmp_path, database_url=SecretStr(url)), {})
    assert redact_own_secrets("it is p@ss!W0rd9, or p%40ss!W0rd9") == f"it is {MARK}, or {MARK}"
    assert redact_own_secrets("xp@ss!W0rd9 and p@ss!W0rd and P@SS!w0rd9") == "xp@ss!W0rd9 and p@ss!W0rd and P@SS!w0rd9"
    for word in ("newton", "sunshine", "newton-dev", "changeme-1234"):
        register_secrets(make_settings(tmp_path, database_url=SecretStr(f"postgresql://u:{word}@db/n")), {})
        assert redact_own_secrets(f"The word {word} is kept.") == f"The word {word} is kept."


def test_secrets_of_mcp_servers_and_of_the_environment_are_recognized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [secrets.token_hex(20) for _ in range(4)]
    monkeypatch.setenv("MISTRAL_API_KEY", values[0])
    monkeypatch.setenv("CRM_LOGIN", values[1])
    monkeypatch.setenv("MAIN_KEY", "/home/ana/key1")
    headers = {"Authorization": f"Bearer {values[2]}"}
    fields = {"url": "https://x.example/${CRM_LOGIN}", "headers": headers, "env": {"A_TOKEN": values[3]}}
    server = McpServerSettings.model_validate(fields)
    register_secrets(make_settings(tmp_path), {"crm": server})
    assert [value for value in values if leaks(value, f"see {value}")] == []
    assert redact_own_secrets("in /home/ana/key1") == "in /home/ana/key1"


def test_sign_in_codes_and_cookies_are_recognized() -> None:
    sessions = BrowserSessions()
    code = sessions.create_code(SignInGrant(token="nwo_x"))
    session_id = sessions.sign_in(code)
    with redaction_tally() as tally:
        redacted = redact_secrets(f"open {code} with {session_id}")
        # a hyphen or underscore before the first letter or digit of a long secret stays
        assert re.sub(r"(?<= )[-_]+", "", redacted) == f"open {MARK} with {MARK}"
        assert tally.count() == {"newton-secret": 2}


def test_files_that_have_secrets_are_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    folder.mkdir()
    token = load_or_create_token(home)
    (tmp_path / "pg").write_text("the password of the database", encoding="utf-8")
    monkeypatch.setenv("NEWTON_DATABASE_URL_FILE", str(tmp_path / "pg"))
    settings = make_settings(home)
    register_secrets(settings, {})
    os.link(home / "operator.token", folder / "hard.txt")
    os.link(tmp_path / "pg", folder / "pg.txt")
    (folder / "soft.txt").symlink_to(home / "operator.token")
    (folder / "copy.txt").write_text(f"\n{token}\n", encoding="utf-8")
    (folder / "base64.txt").write_text(base64.b64encode(token.encode()).decode(), encoding="utf-8")
    (folder / "long.md").write_text(f"{token}\n" + "A line of notes on cranes.\n" * 400, encoding="utf-8")
    (folder / "note.md").write_text("The token is in the safe.", encoding="utf-8")
    found = find_documents(folder, follow=True, is_secret=SecretFiles(settings).contains)
    assert [path.name for path in found.documents] == ["long.md", "note.md"]
    assert found.skipped.counts == {SECRET: 5}
    alone = find_documents(folder / "copy.txt", is_secret=SecretFiles(settings).contains)
    assert (alone.documents, alone.skipped.counts) == ([], {SECRET: 1})
