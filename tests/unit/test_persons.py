"""Questions about a person in ten languages, the sections of facts, and the share of a context that they may take."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from newton.cognition.assembly.about_section import select_about
from newton.cognition.assembly.budget import allocate_budget
from newton.cognition.assembly.render import count_header_tokens
from newton.cognition.sources.person import FoundPerson
from newton.heart.identity.rule_plan import plan_rules
from newton.heart.identity.user_names import find_address, find_known_names, find_names
from newton.heart.persons.person_questions import PersonQuestion, read_person_question
from newton.heart.persons.profile_sections import (
    PersonFact,
    classify_text,
    find_related_names,
    find_relations,
    group_facts,
    group_user_facts,
    rank_facts,
    settle_facts,
)
from newton.runtime.settings_mapping import build_artifact_policy
from newton.settings import load
from newton.text.chat_lines import quote_line
from tests.support import NOON, count
from tests.unit.assembling import found

EVERYTHING = """
What do you know about me?|Tell me everything you've noted about me so far, the whole lot
who am I?|run me everything you got on me
Was weißt du über mich?|erzähl mir mal alles was du so über mich weißt|Wer bin ich?
¿Qué sabes de mí?|Dime todo lo que sabes sobre mí|¿Quién soy?
Que sais-tu de moi ?|Dis-moi tout ce que tu sais sur moi|Qui suis-je ?
Cosa sai di me?|Dimmi tutto quello che sai su di me
O que sabes sobre mim?|Diz-me tudo o que sabes sobre mim
Wat weet je over mij?|Vertel me alles wat je over mij weet|Wie ben ik?
Что ты знаешь обо мне?|Расскажи всё, что знаешь обо мне
你知道我什么？|告诉我你知道的关于我的一切
私について何を知っていますか？|私は誰ですか？
"""
NAME = """
What's my name?|what do you call me|Which name did I give you for myself?|do you remember my name?
Wie heiße ich?|Weißt du noch, wie ich heiße?|¿Cómo me llamo?|Comment je m'appelle ?|Come mi chiamo?|Como me chamo?
Hoe heet ik?|Как меня зовут?|我叫什么名字？|私の名前は何ですか？
"""
OTHERS = {
    "Who is Lien?": "Lien",
    "Tell me everything about my girlfriend Lien.": "my girlfriend Lien",
    "who's minh again": "minh",
    "wer ist nochmal der Rico": "Rico",
    "Qui est Lien ?": "Lien",
    "¿Quién es Lien?": "Lien",
    "Chi è Lien?": "Lien",
    "Quem é a Lien?": "Lien",
    "Wie is Lien?": "Lien",
    "Кто такая Лиза?": "Лиза",
}
NO_QUESTIONS = (
    "Who reviews it?",
    "What do you know about the deployment?",
    "Who is the manager of the shop?",
    "I told her everything about the boiler.",
    "How do I name a branch in git?",
    "Weißt du, wie man Brot backt?",
)
INTRODUCTIONS = {
    "I'm Priya Kulkarni, 34, pharmacist.": "Priya Kulkarni",
    "everybody calls me tizzy tho": "tizzy",
    "i'm nadia, i'm a dental hygienist": "nadia",
    "I need a hand, but first hello: Henrike here, choir director.": "Henrike",
    "Wenn's geht sag Kati zu mir": "Kati",
    "Todos me llaman Pepe.": "Pepe",
    "Tout le monde m'appelle Mimi.": "Mimi",
    "Iedereen noemt me Ans.": "Ans",
    "Все зовут меня Саша.": "Саша",
    "大家都叫我小雪。": "小雪",
    "ゆきと呼んでください": "ゆき",
    "The parcel has come. Best, Bea": "Bea",
    "Hi, Karim here.": "Karim",
    "Hiya, Moira here.": "Moira",
    "hello there, Teodor here. i moved": "Teodor",
    "hiya moira here": "moira",
    "it's Moira again": "Moira",
    "Moira speaking": "Moira",
    "hi this is Moira from the library": "Moira",
    "Morning, Rose here!": "Rose",
    "call me mo": "mo",
    "they call me Big Al": "Big Al",
    "I go by Sam": "Sam",
    "name's Dusty": "Dusty",
    "Which soup keeps best? cheers, Moira": "Moira",
    "Fix the boiler.\nThanks!\nMoira x": "Moira",
    "Moin, Jörg hier.": "Jörg",
    "Hallo, hier ist Jörg.": "Jörg",
    "Hola, soy Pepe otra vez": "Pepe",
    "Salut, c'est Mimi.": "Mimi",
    "Ciao, sono Gino.": "Gino",
    "Olá, aqui é a Rita.": "Rita",
    "Hoi, met Ans van de bieb": "Ans",
    "Привет, это Саша.": "Саша",
    "Can you help me with a card? It's Joanne btw": "Joanne",
    "the name is Rufus, retired plumber": "Rufus",
    "Joanne from the bakery again, we need a new price list": "Joanne",
    "And who am I talking to? Pavel, night porter.": "Pavel",
    "Mit wem spreche ich? Heike.": "Heike",
    "Yusuf's the name, fixing boilers is the game": "Yusuf",
    "everyone at work just knows me as Kirsty": "Kirsty",
    "so yeah I'm Erin and I run": "Erin",
    "Ich bin übrigens der Jonas": "Jonas",
    "moi c'est Chantal, j'habite à Lille": "Chantal",
    "ciao, sono Giulia e vivo a Torino": "Giulia",
    "mi chiamano Renzo": "Renzo",
    "健太です。よろしくお願いします。": "健太",
}
ADDRESSES = {
    "My husband always says 'Mireille, you talk more to the flowers than to me' haha": "Mireille",
    "My mother still says to me: Colm, eat your greens!": "Colm",
    'my wife goes "Hector, put the phone down" all evening': "Hector",
    "My boss always says 'Leonie, you are too slow' but I like to do things right": "Leonie",
    "Kids on the bus holler LONNIE LONNIE all the way to school.": "Lonnie",
    "Draft a reminder to clients. Sign it Dr. Kamau.": "Kamau",
    "This is Beata. I'd like a list of plants.": "Beata",
    'Mein Mann sagt immer "Ute, du redest zu viel"': "Ute",
    'mi hermana siempre me dice "Inma, duermes poco"': "Inma",
    "mon fils me dit toujours « Maëlle, tu travailles trop »": "Maëlle",
    'mio marito mi dice sempre "Fiorella, calmati"': "Fiorella",
    "我老公总说“美玲，你太忙了”": "美玲",
}
NO_ADDRESSES = (
    'My husband Tom says "Kate, come here" to our daughter',
    "Mum always said to my brother 'Peter, shut the door'",
    'My boss is Marcus. He shouted "Lena, faster!" at the new girl',
    'My daughter says "Elsa, let it go" all day, it\'s from Frozen',
    'My husband always says "Darling, you work too much"',
    "the fans shouted MESSI MESSI the whole night",
    'the neighbour shouts "Rocky, Rocky" at his dog all night',
    "Mon voisin dit « Paul, viens manger » à son fils",
    "Write an invitation, sign it from Mum",
    "This is Bruno, my dog",
)
NO_INTRODUCTIONS = (
    "I like Berlin best, Paris less.",
    "i'm knackered, i'm off to bed",
    "Thanks, Anna",
    "My favourite city - Paris",
    "call me later, please",
    "Nothing here.",
    "Moira here says it rains",
    "is Moira here?",
    "Tom here is my brother",
    "it's Friday again",
    "It's Christmas again.",
    "Call me Monday please",
    "hi this is brilliant",
    "hey it's raining again",
    "Hallo, es ist Freitag.",
    "Paris here we come",
    "Rain here.",
    "Don't call me Al",
    "My dog's name's Dusty",
    "We have a dog, name's Dusty",
    "This is Moira from the library",
    "Cheers, Newton",
    'Write a story about a girl. "My name is Anna," she says.',
    "Who is your doctor? Meyer.",
    "Who am I talking to? A tired nurse.",
    "I'm German and proud of it",
    "Tom from the garage called about my car",
)


def fact(
    number: int, text: str, *, subject: str | None = "user", language: str = "en", state: str = "NEW"
) -> PersonFact:
    told_at = NOON + timedelta(hours=number)
    return PersonFact(UUID(int=number), text, language, subject, state, "user", None, told_at, 1)


def texts(sections: dict[str, list[PersonFact]]) -> dict[str, list[str]]:
    return {section: [one.text for one in facts] for section, facts in sections.items()}


@pytest.mark.parametrize("text", EVERYTHING.strip().replace("\n", "|").split("|"))
def test_a_question_for_all_that_is_known_of_the_user_is_found_in_ten_languages(text: str) -> None:
    # S002-17
    assert read_person_question(text) == PersonQuestion(is_complete=True)


@pytest.mark.parametrize("text", NAME.strip().replace("\n", "|").split("|"))
def test_a_question_for_the_name_of_the_user_is_found_in_ten_languages(text: str) -> None:
    # S002-17
    assert read_person_question(text) == PersonQuestion(asks_name=True)


def test_a_question_about_somebody_else_says_whom_it_means() -> None:
    # S002-18
    assert {text: read_person_question(text).name for text in OTHERS} == OTHERS
    assert [text for text in NO_QUESTIONS if read_person_question(text).is_asked] == []


def test_an_input_concerns_the_sections_of_its_topic() -> None:
    # S002-6
    sections = {
        "What could I cook for Saturday?": "health",
        "Was koche ich heute Abend?": "health",
        "I see a new dentist tomorrow, anything she should know?": "health",
        "Je cherche une idée de cadeau pour lui": "tastes",
        "The staging server does not answer": None,
    }
    found = {text: next(iter(read_person_question(text).sections), None) for text in sections}
    assert found == sections


def test_a_question_about_a_person_is_no_rule_of_the_user() -> None:
    text = "let me hear all you've got on me, every bit of it, as if you were telling a new neighbour"
    assert plan_rules(text, (), {}, said_on=NOON.date()).stated == ()


def test_facts_belong_to_sections_in_ten_languages() -> None:
    # S002-17
    known = {
        ("en", "I'm allergic to penicillin."): "health",
        ("en", "Ramipril 5 mg every morning."): "health",
        ("de", "Ich vertrage keine Nüsse."): "health",
        ("es", "Mi hermana se llama Lucía."): "people",
        ("fr", "J'habite à Lyon."): "home",
        ("it", "Lavoro in banca."): "work",
        ("pt", "O meu cão chama-se Rex."): "pets",
        ("nl", "Ik hou van drop."): "tastes",
        ("ru", "Каждое утро я бегаю."): "habits",
        ("zh", "我对花生过敏。"): "health",
        ("ja", "来月京都へ行く予定です。"): "plans",
    }
    assert {key: classify_text(key[1], key[0]) for key in known} == known


def test_names_are_found_as_people_say_them() -> None:
    # S002-17
    assert {text: next(iter(find_names([text])), None) for text in INTRODUCTIONS} == INTRODUCTIONS
    assert {text: find_names([text]) for text in NO_INTRODUCTIONS if find_names([text])} == {}
    assert {text: next(iter(find_address([text])), None) for text in ADDRESSES} == ADDRESSES
    assert {text: find_address([text]) for text in NO_ADDRESSES if find_address([text])} == {}
    assert find_address([*ADDRESSES][:2]) == [], "one of two names is of somebody else"
    assert find_known_names(["i'm resident at the club now"], ["Resident"]) == []
    assert find_known_names(["I'm Isla's mum.", "Tom here is my brother"], ["Isla", "Tom"]) == []


def test_somebody_of_the_user_stands_with_the_fact_that_says_whose_they_are() -> None:
    # S002-18
    facts = [
        fact(1, "Our dog Bruno is two."),
        fact(2, "Bruno hates fireworks.", subject="Bruno"),
        fact(3, "The kiln is fired at nine.", subject="kiln"),
        fact(4, "Bruno is allergic to chicken.", subject="Bruno"),
        fact(5, "I live in Graz.", state="CONFIRMED"),
        fact(6, "I live in a flat."),
    ]
    assert texts(group_user_facts(facts)) == {
        "home": ["I live in Graz.", "I live in a flat."],
        "pets": ["Our dog Bruno is two.", "Bruno hates fireworks."],
        "health": ["Bruno is allergic to chicken."],
        "other": ["The kiln is fired at nine."],
    }


def test_a_fact_of_no_section_stands_with_those_of_its_message() -> None:
    # S002-17
    told = [fact(1, "I have panic since an accident."), fact(2, "My brother Max bakes.")]
    beside = fact(3, "He is late.")._replace(told_at=told[1].told_at)
    assert texts(group_user_facts([*told, beside])) == {
        "people": ["My brother Max bakes.", "He is late."],
        "other": ["I have panic since an accident."],
    }
    ended = fact(4, "I own a boat.")._replace(total=0)
    assert rank_facts({"home": [ended], "other": [beside]}) == [beside, ended], "what holds comes first"


def test_what_somebody_else_says_of_themselves_stands_with_the_people() -> None:
    # S002-18
    lines = [quote_line("Sam", "I'm allergic to nuts."), quote_line("Bo", "I live in Ghent.")]
    facts = [
        fact(1, "My brother Sam drives a taxi."),
        fact(2, lines[0], subject="Sam"),
        fact(3, lines[1], subject="user"),
        fact(4, "I can't eat mussels."),
    ]
    assert texts(group_user_facts(facts)) == {
        "people": ["My brother Sam drives a taxi.", lines[1], lines[0]],
        "health": ["I can't eat mussels."],
    }
    assert texts(group_facts(facts[1:2])) == {"health": [lines[0]]}, "of Sam it is the health"


def test_the_latest_of_contested_facts_stands_for_all_of_them() -> None:
    # S002-17
    older = [fact(1, "I'm allergic to nuts."), fact(2, "I'm allergic to some nuts.")]
    newer = fact(3, "I'm not allergic to nuts.")._replace(rivals=[UUID(int=1), UUID(int=2), UUID(int=9)])
    latest = newer._replace(rivals=(UUID(int=1), UUID(int=2)), before="I'm allergic to some nuts.")
    assert settle_facts([*older, newer], now=NOON) == [latest]
    reported = newer._replace(trust="agent")
    assert settle_facts([*older, reported], now=NOON) == [*older, reported._replace(rivals=())], (
        "a model's word replaces no person's"
    )
    core = older[0]._replace(state="CORE")
    assert settle_facts([core, newer], now=NOON) == [core, newer._replace(rivals=())]


def test_what_is_over_by_its_own_words_has_ended() -> None:
    # S002-17
    told = [
        "I see my dentist next Wednesday (Wed 25 Nov 2026) at nine.",
        "I'm on antibiotics until Friday (Fri 27 Nov 2026).",
        "We fly to Rome on 3 May 2027.",
        "We moved to Glasgow last week (9 - 15 Nov 2026).",
        "I plan to run every Friday from 5 Dec 2026 on.",
        "I'm on a diet since Monday.",
    ]
    facts = [fact(n, text) for n, text in enumerate(told)]

    def ended(days: int) -> list[str]:
        settled = settle_facts(facts, now=NOON + timedelta(days=days))
        return [one.text for one in group_user_facts(settled).get("ended", ())]

    assert ended(0) == []
    assert sorted(ended(20)) == sorted(told[:2])
    assert sorted(ended(200)) == sorted(told[:3])
    assert classify_text(told[3], "en") == "home"


def test_a_role_and_a_name_are_one_person_only_if_no_other_has_the_role() -> None:
    # S002-18
    facts = [fact(1, "My girlfriend Lien teaches maths."), fact(2, "Lien is from Ghent.", subject="Lien")]
    assert find_relations(facts, "Lien") == {"my girlfriend"}
    assert find_related_names(facts, "my girlfriend") == {"Lien"}
    brothers = [fact(1, "My brother Tom met my brother Jo.")]
    assert find_related_names(brothers, "my brother") == {"Tom"}
    assert find_relations(brothers, "Jo") == {"my brother"}


def test_each_section_gets_room_before_one_gets_all() -> None:
    facts = [fact(n, f"I like tea number {n}.") for n in range(1, 9)] + [fact(20, "I can't eat nuts.")]
    ranked = [one.memory_id.int for one in rank_facts(group_user_facts(facts))]
    assert ranked.index(20) <= 3
    assert sorted(ranked) == [*range(1, 9), 20]


def chosen(sizes: Sequence[int], *, max_tokens: int, question: PersonQuestion) -> tuple[int, int, str]:
    memories = [found(n, kind="fact", summary_tokens=size) for n, size in enumerate(sizes, 1)]
    sections = {one.memory_id: "health" for one in memories}
    person = FoundPerson(question=question, memories=memories, sections=sections, total=len(sizes) + 2)
    budget = allocate_budget(2_000)
    selected = select_about(person, budget, max_tokens, count_header_tokens(count), count)
    reserved = selected.reserve(budget).layers
    assert sum(reserved.values()) <= 2_000
    return len(selected.person.memories), reserved.get("about", 0), selected.note.text if selected.note else ""


def test_a_profile_stays_within_its_budget_and_says_what_did_not_fit() -> None:
    # S002-3
    number, tokens, note = chosen([20] * 30, max_tokens=300, question=PersonQuestion(sections=("health",)))
    assert 8 <= number <= 10 and tokens <= 300 and not note
    assert chosen([20] * 3, max_tokens=0, question=PersonQuestion(sections=("health",))) == (0, 0, "")
    policy = build_artifact_policy(load({"rag_per_turn_profile_budget_tokens": 0}))
    assert policy.max_profile_tokens == 0
    number, tokens, note = chosen([20] * 90, max_tokens=0, question=PersonQuestion(is_complete=True))
    assert 20 <= number < 90 and tokens > 300
    assert note == f"- 92 facts, {number} shown; `newton about --all` lists them.\n"
