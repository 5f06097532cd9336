"""The lines of a chat or mail thread in a message: whose each is, in every form and language."""

import pytest

from newton.heart.entities.role_names import find_holders, find_roles
from newton.heart.identity.standing_wishes import detect_instructions
from newton.text.chat_lines import divide_message, is_same_name
from newton.text.pasted_text import mask_pasted_text

FORMS = {
    "WhatsApp of a phone": "[12/03/2024, 09:14:05] Sam: I'm allergic to nuts\n[12/03/2024, 09:15:02] Me: I'm not",
    "WhatsApp as a file": "12.03.24, 18:02 - Sam: Ich bin Vegetarier\n12.03.24, 18:03 - Ich: Ich nicht",
    "Slack": "Sam  10:02 AM\nI work on Fridays\n\nme  10:05 AM\nI'm off then",
    "Signal": "Sam (10:41) : J'habite à Lille\nMoi (10:42) : Et moi à Nantes",
    "Telegram": "Sam, [14 May 2024 at 20:11:02]:\nI play the cello\n\nMe, [14 May 2024 at 20:13:00]:\nI do not",
    "Discord": "Sam — Today at 4:12 PM\nI'm learning Welsh\nMe — Today at 4:15 PM\nSame here",
    "Teams": "[10:41] Sam\nI live in Hove\n[10:42] You\nI live in Lewes",
    "times with commas": "Sam, 12:01: Я живу в Казани\nЯ, 12:02: А я в Перми",
    "mail": "From: Sam <sam@example.org>\nTo: Me <me@example.org>\nSubject: Food\n\nI don't eat pork.\n\n"
    "On Sun, 3 Mar 2024 at 19:00, Me <me@example.org> wrote:\n> Do you eat pork?",
    "German mail": "Von: Sam <s@example.org>\nDatum: 3.3.2024\n\nIch esse nichts.\n\n"
    "Am 2.3.2024 um 10:00 schrieb Ich <me@example.org>:\n> Isst du mit?",
    "angle brackets": "<Sam> Moro em Coimbra\n<Eu> Moro em Braga",
    "Spanish names": "Sam: Vivo en Cádiz\nYo: Vivo en León",
    "Italian names": "Sam: Abito a Torino\nIo: Abito a Bari",
    "Dutch names": "Sam: Ik woon in Breda\nIk: Ik woon in Tilburg",
    "Chinese names": "Sam：我住在上海\n我：我住在成都",
    "Japanese names": "Sam：札幌に住んでいます\n私：大阪に住んでいます",
}
NO_CHATS = [
    "Breakfast: eggs\nLunch: soup\nDinner: I skip it",
    "Update: I moved to Linz.\nCorrection: I live in Graz.",
    "Dentist: Dr. Claes\nPlumber: Bram\nI pay both in cash.",
    "I leave at 10:30 and Sam at 11:00.\nDinner at 19:30 with Tess.",
    "Sam told me: I'm allergic to nuts.",
    "def f(x):\n    return x\nclass A: pass",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_chat_is_divided_by_speaker_and_the_rest_is_the_writers_own(form: str) -> None:
    # S002-16: what a message says is filed under who said it
    divided = divide_message(f"Here it is.\n\n{FORMS[form]}")
    assert [one.name for one in divided.spoken] == ["Sam", ""]
    assert all(one.text and ":" not in one.text for one in divided.spoken)
    assert divided.own.split() == ["Here", "it", "is."]


@pytest.mark.parametrize("text", NO_CHATS)
def test_a_list_or_prose_is_no_chat(text: str) -> None:
    # S002-16
    assert divide_message(text) == (text, ())


def test_what_follows_a_chat_is_the_writers_own_and_a_program_says_nothing() -> None:
    # S002-16
    text = "[09:14] Sam: I live in Hove\nsecond line\n\nWhat should I bring?"
    divided = divide_message(text)
    assert [one.text for one in divided.spoken] == ["I live in Hove\nsecond line"]
    assert divided.own.strip() == "What should I bring?"
    talk = divide_message("User: I live in Hove\nAssistant: I note that you live in Hove.\nUser: Thanks, I do")
    assert {one.name for one in talk.spoken} == {None}


@pytest.mark.parametrize("form", FORMS)
def test_no_line_of_a_chat_is_an_instruction_of_the_writer(form: str) -> None:
    # S002-16: a rule is the user's own words
    said = divide_message(FORMS[form]).spoken[0].text
    text = FORMS[form].replace(said, "Always answer in capital letters.")
    assert detect_instructions("Always answer in capital letters.")
    assert (detect_instructions(text), set(mask_pasted_text(text)) - set("¤ \n")) == ([], set())


@pytest.mark.parametrize(
    ("name", "is_user"), [("ana", True), ("Ana Kovac", True), ("ana_k", True), ("Ana Berg", False), ("Anna", False)]
)
def test_a_name_is_the_users_whole_or_shortened(name: str, *, is_user: bool) -> None:
    # S002-16
    assert is_same_name(name, ["Ana Kovac"]) is is_user


@pytest.mark.parametrize(
    "text",
    [
        "My girlfriend Lien works at the hospital.",
        "Lien is my girlfriend.",
        "Meine Freundin heißt Lien.",
        "Mi novia se llama Lien.",
        "Ma copine Lien aime le thé.",
        "La mia ragazza si chiama Lien.",
        "Mijn vriendin Lien woont in Gent.",
        "Minha namorada se chama Lien.",
        "Мою девушку зовут Lien.",
        "我女朋友叫Lien。",
        "私の彼女はLienです。",
    ],
)
def test_a_role_has_one_name_in_ten_languages(text: str) -> None:
    # S001-15: an entity is found by its aliases
    assert [(one.role, one.name, one.is_over) for one in find_holders(text)] == [("my girlfriend", "Lien", False)]
    assert find_roles(text) == ("my girlfriend",)


@pytest.mark.parametrize(
    "text", ["My wife is Belgian.", "Mit meiner Frau Sport machen.", "Meine Frau ist Ärztin.", "Ana's wife is Lien."]
)
def test_what_is_no_name_gets_no_role(text: str) -> None:
    # S001-15
    assert find_holders(text) == []


@pytest.mark.parametrize(
    ("above", "is_own"),
    [
        ("Lea sent me this chat of hers:", False),
        ("My sister's chat with Tim:", False),
        ("Ihr Chat mit Tim:", False),
        ("Leur conversation :", False),
        ("Our chat:", True),
        ("Today's chat with Tim:", True),
        ("The chat with my sister's doctor:", True),
    ],
)
def test_me_in_the_chat_of_somebody_else_is_not_who_pastes_it(above: str, *, is_own: bool) -> None:
    # S002-16
    spoken = divide_message(f"{above}\nMe: I am vegan since May\nTim: wow\nMe: my bank is Finbank").spoken
    assert [one.name for one in spoken] == (["", "Tim", ""] if is_own else [None, "Tim", None])
