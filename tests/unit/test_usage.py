"""Which items of a context a reply used."""

from collections.abc import Sequence
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.scoring.reply_usage import extract_keywords, find_used
from tests.cases import load_cases

CASES = load_cases(__file__)

NAMES = UUID(int=7)
REVIEWS = "Ana reviews every migration before it is merged"
STAGING = "The staging server is restarted every Monday at six"
DATABASE = "We chose Postgres with pgvector over ChromaDB: one database to back up"
FERRY = "The ferry is called Artemis"
LINE = "[2026-11-21] User: Mira moved to Oslo in 2019 to work for Statoil"
KETTLE = "The kettle is blue"
LONG = (
    "We walked to the lighthouse with Tom and had lunch at Bellevue; it rained, the boat was late, and on the way back"
    " we met Priya, who paints the harbour every spring and sells the pictures in Bergen"
)
ITEMS = (REVIEWS, STAGING, DATABASE, FERRY, LINE, KETTLE, LONG)
KEYED = {uuid5(NAMES, item): item for item in ITEMS}


ITEM_ID = UUID(int=99)


def is_used(reply: str, item: str, others: Sequence[str], *, input_text: str = "", memory_id: UUID = ITEM_ID) -> bool:
    items = {memory_id: item} | {UUID(int=n): other for n, other in enumerate(others)}
    return memory_id in find_used(reply, items, input_text=input_text)


def of(reply: str, asked: str = "") -> set[str]:
    return {KEYED[memory_id] for memory_id in find_used(reply, KEYED, input_text=asked)}


@pytest.mark.parametrize("item", ITEMS)
def test_a_quotation_counts_wherever_it_stands(item: str) -> None:
    # S002-22: recall precision
    words = item.removeprefix("[2026-11-21] User: ")
    assert item in of(f"As far as I know: {words}. Ask again if you need more.", asked=words)


@pytest.mark.parametrize(
    ("asked", "reply", "items"),
    [
        ("Who looks at my migration?", "Ana does that.", {REVIEWS}),
        ("Who looks at my migration?", "Ana reviews it before the merge.", {REVIEWS}),
        ("What is wrong with the staging server?", "It is restarted on Mondays at six.", {STAGING}),
        ("Which database is it?", "Postgres.", {DATABASE}),
        ("Which database is it?", "We picked Postgres and dropped ChromaDB.", {DATABASE}),
        ("What is the ferry called?", "It is Artemis.", {FERRY}),
        (
            "Tell me of my day",
            "The ferry is called Artemis. The soup was good and there was more of it later.",
            {FERRY},
        ),
        ("What became of Mira?", "She took a position at Statoil in 2019, in Oslo.", {LINE}),
        ("Which colour has the kettle?", "Blue.", {KETTLE}),
        ("What did we do with Tom?", "You had lunch at Bellevue, and Priya told you of her pictures.", {LONG}),
        (
            "Who reviews, and when is the restart?",
            "Ana before the merge; six on Monday for staging.",
            {REVIEWS, STAGING},
        ),
    ],
)
def test_a_paraphrase_counts_by_its_names_numbers_and_words(asked: str, reply: str, items: set[str]) -> None:
    assert of(reply, asked) == items


def test_only_what_tells_an_item_apart_counts() -> None:
    asked = "Is the staging server restarted every Monday at six?"
    assert of("Yes, so it is: restarted, each Monday.", asked) == set()
    # what stands in most items tells none of them apart
    others = [f"Report {n} of the Bergen office on Tuesday" for n in range(12, 20)]
    item = "Report 11 of the Bergen office on Tuesday"
    assert not is_used("The Bergen office sends a report on Tuesday.", item, others)
    assert is_used("The Bergen office sent report 11.", item, others)
    assert extract_keywords("Why is the Server’s log of 2026 not there?") == {"server's", "log", "2026"}


def test_an_id_or_a_ref_that_is_named_counts() -> None:
    memory_id = UUID("01900000-0000-7000-8000-00004f0c83d1")
    assert is_used("See 4f0c83d1.", KETTLE, [], memory_id=memory_id)
    assert is_used(f"See {memory_id}", KETTLE, [], memory_id=memory_id)
    assert not is_used("See 14f0c83d1.", KETTLE, [], memory_id=memory_id)
    items = {memory_id: KETTLE}
    assert find_used("As [f1] says.", items, input_text="", refs={memory_id: "f1"}) == {memory_id}
    assert find_used("In Formula F1 as ever.", items, input_text="", refs={memory_id: "F1"}) == set()
    assert find_used("As D12:345 says.", items, input_text="", refs={memory_id: "D12:345"}) == {memory_id}


# Things that people write about, with words and even names that stand in the items, never what an item says.
ELSEWHERE = CASES["ELSEWHERE"]


@given(st.lists(st.sampled_from(ELSEWHERE), min_size=1, max_size=200))
def test_text_about_something_else_uses_nothing_however_long_it_is(sentences: list[str]) -> None:
    # S002-22: unrelated text does not count
    assert of(" ".join(sentences), asked="What is the plan?") == set()


@given(st.text(max_size=300), st.lists(st.text(max_size=60), max_size=5))
def test_any_text_can_be_asked_about(reply: str, items: list[str]) -> None:
    keyed = {uuid5(NAMES, str(n)): item for n, item in enumerate(items)}
    assert find_used(reply, keyed, input_text=reply) <= keyed.keys()
    assert find_used("", keyed, input_text="") == set()


@given(st.permutations(list(KEYED.items())))
def test_the_order_of_the_items_does_not_matter(pairs: list[tuple[UUID, str]]) -> None:
    reply = "Ana reviews it, Artemis is the ferry, and Postgres was chosen over ChromaDB."
    assert find_used(reply, dict(pairs), input_text="") == find_used(reply, KEYED, input_text="")


QUESTION = "The staging server does not answer, what is wrong?"
RESTART = "The staging server is restarted every Monday at six by cron"
OTHERS = ["Ana reviews every migration before it is merged", "We chose Postgres with pgvector over ChromaDB"]
ID = UUID("01234567-89ab-7def-8123-456789abcdef")


@pytest.mark.parametrize(("reply", "was"), CASES["a_reply_uses_what_it_cites_or_says_in_particular"])
def test_a_reply_uses_what_it_cites_or_says_in_particular(reply: str, was: bool) -> None:  # S002-22
    assert is_used(reply, RESTART, OTHERS, input_text=QUESTION, memory_id=ID) is was
    items = {ID: RESTART, UUID(int=1): OTHERS[0], UUID(int=2): OTHERS[1]}
    assert find_used(reply, items, input_text=QUESTION) == ({ID} if was else set())


def test_only_what_tells_an_item_apart_is_a_sign() -> None:
    others = [f"Caroline told Melanie about pottery classes number {n}" for n in range(20)]
    common = "Caroline told Melanie about pottery classes"
    told = "Of pottery classes Melanie heard from Caroline."
    assert not is_used(told, common, others)
    assert is_used(told, common, others[:1])
    item = "The invoice 4711 over 1,250 euros is due"
    assert is_used("Pay 1,250 for 4711 before it is due.", item, [])
    assert not is_used("Pay 1,300 for 4712 soon.", item, [])
    line = "[2023-05-08] Ana: yes"
    assert not is_used("On 2023-05-08 Ana said yes.", line, [])
    assert not is_used("yes", "yes", [])
    assert extract_keywords("Should we use Redis for caching in Newton's 2 daemons, or not?") == {
        *("redis", "caching", "newton's", "daemons"),
    }
