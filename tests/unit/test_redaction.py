"""Secrets are redacted on labelled lines, half of which were not used to write the patterns, and counted by call."""

import asyncio
import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from newton.content.yaml_files import parse_trusted
from newton.memory.hygiene import clean_text
from newton.memory.redaction.code_forms import CODE_FORMS
from newton.memory.redaction.labelled_values import LABELLED_VALUES
from newton.memory.redaction.random_values import find_random_values
from newton.memory.redaction.redactor import keep_household_codes, redact_secrets
from newton.memory.redaction.tally import count_redactions, redaction_tally
from newton.memory.redaction.told_secrets import TOLD_SECRETS
from tests.unit.source_trees import ROOT

LINES: dict[str, Any] = parse_trusted((ROOT / "tests/data/secrets.yaml").read_text(encoding="utf-8"))
TOLD: dict[str, Any] = parse_trusted((ROOT / "tests/data/told_secrets.yaml").read_text(encoding="utf-8"))
_VALUE = re.compile("«([^»]*)»")
MAX_MISSED, MAX_CHANGED = 0.05, 0.03


def remains(value: str, cleaned: str) -> bool:
    """Return whether half of a secret, or all of a short one, is still in the text."""
    width = min(len(value), max(4, len(value) // 2))
    return any(value[start : start + width] in cleaned for start in range(len(value) - width + 1))


def find_missed(half: int) -> list[str]:
    lines = [line.replace("§", "") for _, line in LINES["secrets"][half::2]]
    cleaned = [(line, redact_secrets(re.sub("[«»]", "", line))) for line in lines]
    return [line for line, text in cleaned if any(remains(value, text) for value in _VALUE.findall(line))]


def find_changed(half: int) -> list[str]:
    return [line for line in LINES["harmless"][half::2] if redact_secrets(line) != line]


def test_labels_and_markers_move_nothing() -> None:
    assert len({kind for kind, _ in LINES["secrets"]}) >= 40
    assert len(LINES["secrets"]) >= 300 and len(LINES["harmless"]) >= 300
    rules = (*LABELLED_VALUES, *TOLD_SECRETS, *CODE_FORMS)
    assert all(label == label.lower() for rule in rules for label in rule.labels)
    assert redact_secrets("İİİ my password is hunter2") == "İİİ my password is [REDACTED:password]"
    # a marker that was typed is not counted
    with redaction_tally():
        assert count_redactions(clean_text("typed: [REDACTED:jwt] and [REDACTED:password]")) == {}
        text = clean_text("typed: [REDACTED:password]; my password is hunter2, and to DE89370400440532013000")
        assert count_redactions(text) == {"iban": 1, "password": 1}
    with redaction_tally() as tally:
        assert clean_text("the password is hunter2") == clean_text("the password is hunter2")
        assert tally.count() == {"password": 1}


@pytest.mark.parametrize("half", [0, 1], ids=["tuned", "heldout"])
def test_at_most_one_secret_in_twenty_is_missed(half: int) -> None:
    missed = find_missed(half)
    assert len(missed) <= MAX_MISSED * len(LINES["secrets"][half::2]), missed


@pytest.mark.parametrize("half", [0, 1], ids=["tuned", "heldout"])
def test_at_most_three_harmless_lines_in_a_hundred_are_changed(half: int) -> None:
    changed = find_changed(half)
    assert len(changed) <= MAX_CHANGED * len(LINES["harmless"][half::2]), changed


def test_lines_of_later_are_redacted_too() -> None:
    lines = [line.replace("§", "") for line in LINES["later_secrets"]]
    missed = [line for line in lines if "[REDACTED:" not in redact_secrets(line)]
    assert len(missed) <= MAX_MISSED * len(lines), missed
    assert [line for line in LINES["later_harmless"] if redact_secrets(line) != line] == []


@pytest.fixture
def redacted_household() -> Iterator[None]:
    keep_household_codes(keep=False)
    yield
    keep_household_codes(keep=True)


@pytest.mark.usefixtures("redacted_household")
@pytest.mark.parametrize("part", sorted(TOLD))
def test_secrets_that_sentences_tell_are_found_in_any_language(part: str) -> None:
    lines = [line.replace("§", "") for line in TOLD[part]["secrets"]]
    cleaned = [(line, redact_secrets(re.sub("[«»]", "", line))) for line in lines]
    missed = [line for line, text in cleaned if any(remains(value, text) for value in _VALUE.findall(line))]
    assert len(missed) <= MAX_MISSED * len(lines), missed
    changed = [line for line in TOLD[part]["harmless"] if redact_secrets(line) != line]
    assert len(changed) <= MAX_CHANGED * len(TOLD[part]["harmless"]), changed


def test_codes_of_a_household_are_kept_unless_the_setting_says_otherwise(redacted_household: None) -> None:
    lines = ["The alarm code is 362008.", "The wifi password for the guests is zebra36.", "My passport is X1234567."]
    assert all("[REDACTED:" in redact_secrets(line) for line in lines)
    keep_household_codes(keep=True)
    assert [redact_secrets(line) for line in lines] == lines
    assert redact_secrets("The PIN of the card is 4471.") == "The PIN of the card is [REDACTED:pin]."


async def test_calls_count_apart_and_threads_count_with_their_call() -> None:
    async def call(text: str) -> dict[str, int]:
        with redaction_tally() as tally:
            await asyncio.to_thread(clean_text, text)
            return tally.count()

    first, second = await asyncio.gather(call("the password is hunter2"), call("iban DE89370400440532013000"))
    assert (first, second) == ({"password": 1}, {"iban": 1})


@pytest.mark.usefixtures("redacted_household")
def test_lines_of_a_second_author_are_redacted() -> None:
    lines = parse_trusted((ROOT / "tests/data/secrets_second_author.yaml").read_text(encoding="utf-8"))
    cleaned = [(one, redact_secrets(one["text"])) for one in lines["secrets"]]
    missed = [one["text"] for one, text in cleaned if any(remains(value, text) for value in one["vanish"])]
    assert len(missed) <= 0.02 * len(cleaned), missed
    changed = [line for line in lines["harmless"] if redact_secrets(line) != line]
    assert len(changed) <= 0.01 * len(lines["harmless"]), changed


@pytest.mark.usefixtures("redacted_household")
@pytest.mark.parametrize("name", ["secret_classes", "secret_forms"])
def test_secrets_of_no_known_service_are_found_by_their_class(name: str) -> None:
    lines = parse_trusted((ROOT / f"tests/data/{name}.yaml").read_text(encoding="utf-8"))
    missed = [text for _, text, secret in lines["secrets"] if remains(secret, redact_secrets(text))]
    assert len(missed) <= 0.03 * len(lines["secrets"]), missed
    assert [line for line in lines["harmless"] if redact_secrets(line) != line] == []


def test_an_encoded_secret_is_redacted_and_an_encoded_picture_is_not() -> None:
    config = b"DB_PASSWORD=hunter2!x, and the port is 5432"
    for written in (base64.b64encode(config).decode(), config.hex(), config.hex(" ")):
        assert redact_secrets(f"it is {written} now") == "it is [REDACTED:secret] now"
    picture = "data:image/png;base64," + base64.b64encode(bytes(range(200))).decode()
    harmless = base64.b64encode(b"The meeting is at nine in the small room.").decode()
    assert [redact_secrets(one) for one in (picture, harmless)] == [picture, harmless]


def test_a_label_within_another_word_and_chords_reveal_no_secret() -> None:
    lines = [
        "Autoclave, E5: door seal was leaking again.",
        "Conclave: 120-cardenales, dijo la radio.",
        "Enclave: Büsingen-2 ist der Name der Tour.",
        "Clavecin: Ruckers-1640, accordé à 415Hz.",
        "Desenha: Casa-2024 com telhado azul.",
        "Ike plays roots, and Junior does walk-ups between chords (E-F#-G#-A), so he stays busy.",
        "The roots are C#m-G#m-A-E, then Bb7/Eb7/Ab7.",
    ]
    assert [line for line in lines if redact_secrets(line) != line] == []
    secrets = ["clave: Perro.Azul77", "miClave=Perro.Azul77", "DB_CLAVE=Perro.Azul77", "Las claves son: Perro.Azul77"]
    secrets += ["root password is E-F#-G#-A-x9Kq", "Masterpasswort: Perro.Azul77", "senha: Perro.Azul77"]
    secrets += ["passphrase: correct-horse-battery-staple"]
    assert [line for line in secrets if "[REDACTED:" not in redact_secrets(line)] == []


def test_a_code_is_found_with_its_word_on_either_side_and_a_sentence_away() -> None:
    lines = {
        "AQX7-9LMK2P-3FWD is your gift card": "AQX7-9LMK2P-3FWD",
        "Gift card: AQX7-9LMK2P-3FWD": "AQX7-9LMK2P-3FWD",
        "kqzw ojtr baxm plye <- the app password": "kqzw ojtr baxm plye",
        "New login for the portal. Same user. It's Bramble77pony.": "Bramble77pony",
        "[14:02] Mia: what was the disney password\n[14:03] Pa: Elsa&Olaf2016": "Elsa&Olaf2016",
    }
    assert [line for line, secret in lines.items() if secret in redact_secrets(line)] == []
    serial = "The serial number AQX7-9LMK2P-3FWD is on the gift card reader."
    assert redact_secrets(serial) == serial


def test_a_repeated_header_of_a_table_finds_each_cell_once() -> None:
    table = "user | password\nana | a1b2c3\n" * 200
    found = list(find_random_values(table, table, {"password": [m.end() for m in re.finditer("password", table)]}))
    assert len(found) == len(set(found)) == 200
