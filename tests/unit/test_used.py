"""Whether a reply used a memory: strictly, for what is called used here is what is learnt from."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from newton.cognition.scoring.reply_usage import extract_keywords, find_used

QUESTION = "The staging server does not answer, what is wrong?"
RESTART = "The staging server is restarted every Monday at six by cron"
OTHERS = ["Ana reviews every migration before it is merged", "We chose Postgres with pgvector over ChromaDB"]
ID = UUID("01234567-89ab-7def-8123-456789abcdef")


ITEM_ID = UUID(int=99)


def is_used(reply: str, item: str, others: Sequence[str], *, input_text: str = "", memory_id: UUID = ITEM_ID) -> bool:
    items = {memory_id: item} | {UUID(int=n): other for n, other in enumerate(others)}
    return memory_id in find_used(reply, items, input_text=input_text)


@pytest.mark.parametrize(
    ("reply", "was"),
    [
        ("It is Monday: cron has restarted it at six.", True),
        ("See 01234567-89ab-7def-8123-456789abcdef.", True),
        ("As 89abcdef says, wait.", True),
        ("The staging server does not answer. Is it the network?", False),  # all of it stands in the question
        ("I do not know; it may be restarted.", False),
        ("Let us look at the weather.", False),
        ("", False),
    ],
)
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
