"""The kind of a question and the intent of an input, and what follows from them."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from newton.cognition.questions.question_kinds import QuestionKind, read_question
from newton.cognition.questions.question_rules import SESSION_SUMMARY, rank_for_question
from newton.cognition.sources.signals import EVENT_TYPES_BY_INTENT, classify_intent
from newton.content.yaml_files import parse_trusted
from newton.memory.memory import Kind
from newton.memory.search_types import RetrievedMemory
from tests.cases import load_cases
from tests.support import NOON
from tests.unit.assembling import found

LABELLED: dict[QuestionKind, list[str]] = parse_trusted(
    (Path(__file__).parents[1] / "data" / "question_kinds.yaml").read_text(encoding="utf-8")
)
MONDAY, FRIDAY = UUID(int=101), UUID(int=102)


def message(number: int, relevance: float, speaker: str = "User", *, session: UUID = MONDAY) -> RetrievedMemory:
    return memory(number, relevance, f"[2026-11-20] {speaker}: line {number}", session=session, position=number)


def memory(
    number: int, relevance: float, text: str, *, session: UUID, position: int | None, kind: Kind = "exchange"
) -> RetrievedMemory:
    moment = NOON + timedelta(hours=number)
    forms = {"micro": text, "summary": text, "micro_tokens": 20, "summary_tokens": 20, "word_count": 6}
    times = {"occurred_at": moment, "created_at": moment, "thread_id": session, "position": position}
    return found(number, **forms, **times, kind=kind, similarity=0.0, lexical=0.0, relevance=relevance)


def rank(text: str, memories: Sequence[RetrievedMemory], *, max_tokens: int = 2_000) -> list[int]:
    ranked = rank_for_question(read_question(text), memories, max_tokens=max_tokens)
    return [found.memory_id.int for found in ranked.memories]


@pytest.mark.parametrize("kind", LABELLED)
def test_questions_are_read_as_labelled(kind: QuestionKind) -> None:
    kinds = Counter(read_question(text).kind for text in LABELLED[kind])
    assert kinds[kind] >= 0.9 * kinds.total()


def test_timelines_and_summaries_prefer_the_person_and_spread_over_sessions() -> None:
    replies = [message(number, 1.0, "Assistant") for number in (1, 3)]
    monday = [message(number, 0.9 - number / 1_000) for number in (2, 4, 6, 8)]
    ranked = rank("In what order did I mention the tests?", [*replies, *monday, message(10, 0.8, session=FRIDAY)])
    assert ranked.index(10) < ranked.index(8)
    assert ranked[-2:] == [1, 3]
    # a summary ranks a reply with its message and the best turn of each session first
    memories = [
        message(2, 1.0),
        message(3, 0.2, "Assistant"),
        message(4, 0.98),
        message(6, 0.9, session=FRIDAY),
        message(7, 0.1, "Assistant", session=FRIDAY),
    ]
    assert rank("Summarise the project.", memories) == [2, 3, 6, 7, 4]
    # summaries of sessions come first within a tenth of the tokens
    episodes = [memory(n, 0.1, f"episode {n}", session=FRIDAY, position=None, kind="episode") for n in (11, 12)]
    given = [message(2, 1.0), message(4, 0.9), *episodes]
    ranked = rank_for_question(read_question("Give me an overview."), given, max_tokens=300)
    assert {found.memory_id.int for found in ranked.memories[:2]} == {2, 11}
    assert ranked.gathering.reasons == {UUID(int=11): SESSION_SUMMARY}
    assert read_question("Please sum up the talks with the bank.").phrase == "sum up"
    assert read_question("Where is the key?").phrase == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Where is the key?", [1, 2, 3]),
        ("What did you tell me about the key?", [1, 2, 3]),
        ("Where did I put the key?", [2, 1, 3]),
        ("Where did I mention the key?", [2, 3, 1]),
    ],
)
def test_replies_rank_lower_for_a_question_about_the_person(text: str, wanted: list[int]) -> None:
    assert rank(text, [message(1, 1.0, "Assistant"), message(2, 0.9), message(3, 0.8)]) == wanted


@pytest.mark.parametrize("text", ["Sum up the talks.", "In what order did I say it?", "How many did I mention?"])
def test_relevance_stays_within_that_of_the_search(text: str) -> None:
    given = [message(n, 1 / n, "User" if n % 2 else "Assistant", session=(MONDAY, FRIDAY)[n % 2]) for n in range(1, 30)]
    ranked = rank_for_question(read_question(text), given, max_tokens=500)
    assert sorted(f.memory_id for f in ranked.memories) == sorted(f.memory_id for f in given)
    assert all(0 <= found.relevance <= 1 for found in ranked.memories)
    assert ranked.gathering.rules


CASES = load_cases(__file__)


@pytest.mark.parametrize(("text", "wanted"), CASES["what_an_input_is_for_is_told_by_whole_words_in_order"])
def test_what_an_input_is_for_is_told_by_whole_words_in_order(text: str, wanted: str) -> None:
    assert classify_intent(text) == wanted  # S001-13


def test_each_intent_has_its_events() -> None:
    # S001-14
    assert EVENT_TYPES_BY_INTENT["fix"][0] == "error"
    assert EVENT_TYPES_BY_INTENT["other"] == ()
