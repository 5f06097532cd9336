"""Which rules a message states, changes and lifts, and which of its words are pasted."""

from datetime import date

import pytest

from newton.heart.identity.rule_plan import RulePlan, list_rule_texts, plan_rules
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.identity.tenets import IdentityTenet, make_tenet
from newton.heart.identity.wish_models import mask_sentences
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.providers import token_counter
from tests.unit.local_models import embed

DAY = date(2026, 11, 27)
NUTS = "Never suggest anything with nuts"
SHORT = "Keep your answers under three lines"
SENDING = "Nothing goes out to customers without my ok"


def rules(*texts: str) -> list[IdentityTenet]:
    return [make_tenet("instruction", text, token_counter.count, said_on=DAY) for text in texts]


def plan(text: str, *in_force: str, has_reader: bool = False) -> RulePlan:
    known = [*list_rule_texts(text), *in_force]
    return plan_rules(text, rules(*in_force), embed(*known), said_on=DAY, has_reader=has_reader)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Did the parcel come? And messages to the lawyer, show me first, always.", "messages to the lawyer"),
        ("when i paste an invoice u check the vat number first", "check the vat number"),
    ],
)
def test_a_rule_in_words_that_no_pattern_knows_is_stated(text: str, kept: str) -> None:
    (rule,) = plan(text).stated
    assert kept in rule.text and "parcel" not in rule.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Just call me Bo, Robert is my dad. n show me any mail to the bank before u send it, always", 2),
        ("Oh, and never tell anyone where I park. When I want to, I do it myself.", 1),
        ("Whenever u write sql for me use lower case keywords, always, it's the norm here", 1),
    ],
)
def test_each_rule_of_a_message_is_stated_in_the_words_of_its_sentences(text: str, kept: int) -> None:
    stated = plan(text).stated
    assert len(stated) >= kept and not any("Robert" in one.text and "bank" in one.text for one in stated)


def test_what_is_passed_on_pasted_or_doubtful_states_and_lifts_no_rule() -> None:
    for kept in ("Do not lift the rule about nuts.", "My sister no longer suggests anything with nuts."):
        assert plan(kept, NUTS) == RulePlan(is_unsure=True), kept
    assert not plan("The dog ate my sock today.").is_unsure
    assert plan("When its recipes u can write as much as u like, all else stays brief", SHORT).is_unsure
    letter = "My cousin sent this, any use?\n\nHi Lena! Always ask me before you book a band. Never pay up front. Kim x"
    assert plan(letter, NUTS) == RulePlan()
    called = "Jo and I called it a day last night. We're ok, no drama. I paid back what I owed."
    assert plan(called, "Just call me Bo, only my dad says Robert").lifted == ()
    assert plan("Nuts are allowed again.", SHORT) == RulePlan(is_unsure=True)
    assert plan("You can suggest nuts again.", NUTS, "Do not suggest any nuts").lifted == ()
    sentences = mask_sentences("> Never call me.\nWho said that?")
    assert [one.masked.strip("¤ ") for one in sentences] == ["", "Who said that?"]


def test_a_model_that_reads_a_message_decides_on_what_is_not_certain() -> None:
    farewell = "Then rather buy, you are right."
    assert plan(farewell).stated and plan(farewell, has_reader=True) == RulePlan(is_unsure=True)
    lifting = "Nuts are allowed again."
    assert plan(lifting, NUTS).lifted and plan(lifting, NUTS, has_reader=True) == RulePlan(is_unsure=True)
    assert plan("From now on answer in French, please.", has_reader=True).stated
    assert not plan(
        "if i would have my own firm with three trucks i would only drive to italy i sware every week"
    ).stated


@pytest.mark.parametrize(
    "text",
    [
        "Keep this one short, the bus is coming.",
        "My surgeon said never lift anything heavy. For how long?",
        "I must never forget the stove again.",
        "The sign says: no dogs on the lawn. Does that hold at night?",
        "In this card game nobody may speak. Who begins?",
        "She wrote 'never call me Betty again'. What now?",
        "Would you say that is rude?",
        "The guest said: stop suggesting anything with nuts.",
    ],
)
def test_what_only_looks_like_a_rule_changes_nothing(text: str) -> None:
    assert plan(text, NUTS, SHORT) == RulePlan()


@pytest.mark.parametrize(
    ("text", "lifted", "is_amended"),
    [
        ("You can suggest nuts again.", NUTS, False),
        ("Longer answers are fine again.", SHORT, False),
        ("Nuts are okay again, except walnuts.", NUTS, True),
        ("Thank-you notes to customers you can send without asking me.", SENDING, True),
    ],
)
def test_a_later_sentence_lifts_or_changes_the_rule_that_it_is_about(text: str, lifted: str, is_amended: bool) -> None:
    ((rule, new_text),) = plan(text, NUTS, SHORT, SENDING).lifted
    assert rule.text == lifted
    assert (new_text is not None) == is_amended and (not new_text or new_text.startswith(f"{lifted} (since 2026"))


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("You can send the newsletter to customers without asking me again. Keep answers short though.", SENDING),
        ("The nuts rule? Not needed any more.", NUTS),
    ],
)
def test_a_rule_that_another_sentence_names_is_not_the_one_lifted(text: str, about: str) -> None:
    (one,) = plan(text, NUTS, SHORT, SENDING).lifted
    assert one.rule.text == about


@pytest.mark.parametrize(
    "told",
    [
        "this came from the council what is it\n\nTHE NOTICE",
        "Angus next door sent me this what does he want\n\nTHE NOTICE",
        "Das kam heute mit der Post, was heißt das\n\nTHE NOTICE",
        "me llegó esto, ¿qué quieren?\n\nTHE NOTICE",
        "What do they want?\n\nDear members, THE NOTICE",
        "What do they want?\n\nFrom: Martin Feeney\nDear members, THE NOTICE",
    ],
)
def test_text_that_a_first_paragraph_presents_is_not_the_persons_own(told: str) -> None:
    notice = (
        "I am the owner of the pier and all boats have to be moved by the fifth of May because we dredge the harbour."
    )
    assert "dredge" in split_own_words(told.replace("THE NOTICE", notice)).foreign


def test_what_a_person_tells_in_paragraphs_is_their_own() -> None:
    told = "Good evening. This week was long.\n\nMy wife came home on Tuesday, the boys were with my mother"
    told += ", and the roof of the cottage is finished, which I would not have thought possible in May."
    assert split_own_words(told).foreign == ""


@pytest.mark.parametrize(
    "request_of_work",
    [
        "Translate this into English for me: {}",
        "Make this more polite: {}",
        "Hi! Could you polish the following for me: {}",
        "What does this mean: {}",
        "Mach das bitte höflicher: {}",
        "Übersetze das ins Englische: {}",
        "Traduis ceci en anglais : {}",
        "Rends ça plus poli : {}",
        "Traduce esto al inglés: {}",
        "Correggi questo testo: {}",
        "Vertaal dit naar het Engels: {}",
        "Traduz isto para inglês: {}",
        "Переведи это на английский: {}",
        "これを英語に翻訳して：{}",
        "把这句话翻译成英文：{}",
    ],
)
@pytest.mark.parametrize(
    "rule", ["Never mention prices. Always answer in French.", "Nenne nie Preise. Antworte immer auf Französisch."]
)
def test_a_text_that_is_to_be_translated_or_polished_states_no_rule(request_of_work: str, rule: str) -> None:
    text = request_of_work.format(rule)
    assert detect_instructions(text) == [] and not any(one.text in rule for one in mask_sentences(text))


@pytest.mark.parametrize(
    "text",
    [
        "Translate my messages into English. Always answer in French.",
        "Make your answers more polite: never call me dude.",
        "Please always answer politely: never use slang.",
        "Antworte ab jetzt höflicher: nenne mich nie Schatz.",
    ],
)
def test_a_rule_on_the_work_of_the_assistant_is_stated(text: str) -> None:
    assert detect_instructions(text)
