"""The memories nearest to a question are selected, however low the probability that one answers."""

from dataclasses import replace

import pytest

from newton.cognition.questions.question_kinds import read_question
from newton.cognition.scoring.candidates import MESSAGE_TOKENS, OTHER_TOKENS, OWN_TOKENS, UNLIKELY_FACTS, select_nearest
from newton.cognition.scoring.relevance import NO_ESTIMATE, AnswerEstimate
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from tests.unit.assembling import found

TOKENS = 40
UNLIKELY = AnswerEstimate(0.1)


def fact(number: int, cosine: float, *, state: str = "NEW") -> RetrievedMemory:
    text = f"Fact {number}"
    forms = {"micro": text, "summary": text, "micro_tokens": TOKENS, "summary_tokens": TOKENS, "word_count": 8}
    return found(number, **forms, state=state, similarity=cosine, lexical=0.0, relevance=cosine)


FOUND = [fact(number, 0.40 - number / 100) for number in range(1, 30)]


def select(text: str, *found: RetrievedMemory, answers: AnswerEstimate = UNLIKELY) -> list[int]:
    result = RecallResult(query=RecallQuery(text=text), memories=found, missing={}, text_count=300)
    return sorted(one.int for one in select_nearest(result, read_question(text), answers))


@pytest.mark.parametrize("text", ["What is my van?", "who do i report to at work", "And where are we now?"])
def test_a_question_about_the_person_gets_the_nearest_facts_of_a_fixed_size(text: str) -> None:
    assert select(text, *reversed(FOUND)) == list(range(1, OWN_TOKENS // TOKENS + 1))


def test_another_question_gets_fewer_by_its_probability_unless_a_name_decides() -> None:
    text = "What time do the first children get on?"
    assert select(text, *FOUND) == list(range(1, OTHER_TOKENS // TOKENS + 1))
    assert select(text, *FOUND, answers=AnswerEstimate(0.01)) == list(range(1, UNLIKELY_FACTS + 1))
    assert select("at which stop do they get on", *FOUND) == list(range(1, OTHER_TOKENS // TOKENS + 1))
    meeting = "When is the meeting with Mr Ockleweft?"
    assert select(meeting, *FOUND) == [], "memory has not the name"
    known = AnswerEstimate(0.5, knows_names=True)
    assert select(meeting, *FOUND, answers=known) == list(range(1, OTHER_TOKENS // TOKENS + 1))
    assert select("What is my van?", *FOUND, answers=AnswerEstimate(0.01)), "a van may be known by its make alone"


@pytest.mark.parametrize(
    "text",
    [
        "My van broke down on the way to work.",
        "Write a letter to my landlord.",
        "Sum up what I told you this week.",
        "Thanks, that is all I need",
    ],
)
def test_what_is_no_question_for_single_facts_gets_none(text: str) -> None:
    assert select(text, *FOUND) == []


def test_facts_far_from_the_question_past_or_quarantined_are_left_out() -> None:
    text = "What is my van?"
    assert select(text, fact(1, 0.05)) == []
    assert select("How do I tune a sitar?", fact(1, 0.25)) == [], "it asks for knowledge of the world"
    assert select("What do I get for a delivery?", fact(1, 0.25)) == [1]
    assert select(text, fact(1, 0.5), fact(2, 0.1)) == [1]
    few = list(range(1, UNLIKELY_FACTS + 1))
    assert select(text, *(fact(number, 0.15) for number in range(1, 9))) == few
    assert select("When is the boat taken out?", *(fact(number, 0.22) for number in range(1, 9))) == few
    # past and quarantined facts are left out and the vector of the question decides
    text, best = "What is my van?", fact(1, 0.3)
    others = (fact(2, 0.4, state="SUPERSEDED"), fact(3, 0.4)._replace(quarantined=True))
    assert select(text, best, *others, fact(4, 0.4)._replace(kind="exchange")) == [1]
    assert select(text, best, answers=NO_ESTIMATE) == [], "nothing is known of the questions that memory answers"
    # the vector of the question decides
    far, near = fact(1, 0.4), fact(2, 0.1)
    result = RecallResult(query=RecallQuery(text="What is my van?"), memories=[far, near], missing={}, text_count=300)
    result = replace(result, answer_similarities={far.memory_id: 0.1, near.memory_id: 0.5})
    assert select_nearest(result, read_question("What is my van?"), UNLIKELY) == {near.memory_id}


def message(number: int, cosine: float, *, by: str = "User", is_question: bool = False) -> RetrievedMemory:
    text = f"[2026-10-05] {by}: It is {number}{'?' if is_question else '.'}"
    return fact(number, cosine)._replace(kind="exchange", micro=text, summary=text)


def test_what_is_near_is_chosen() -> None:
    text = "How often is the ash rinsed?"
    said = [message(number, 0.3 - number / 100) for number in range(1, 8)]
    expected = list(range(1, MESSAGE_TOKENS // TOKENS + 1))
    assert select(text, *reversed(said)) == expected
    assert select(text, message(8, 0.5, by="Assistant"), message(9, 0.5, is_question=True), *said) == expected
    assert select(text, *said, answers=AnswerEstimate(0.3)) == [], "messages are selected by their own probability"
    assert select(text, message(1, 0.15)) == select("How can I rinse ash?", *said) == []
    # messages that no person wrote are not added
    text = "Who mends the boiler?"
    written = message(1, 0.4)
    assert select(text, written) == [1]
    assert select(text, written._replace(trust="tool")) == select(text, written._replace(trust="web")) == []
    assert select("What is my van?", fact(1, 0.6), fact(2, 0.3), fact(3, 0.22)) == [1, 2]
    assert select("What is my van?", fact(1, 0.45), fact(2, 0.3), fact(3, 0.22)) == [1, 2, 3]
    # what is near and likely comes before what is only near
    found = [fact(number, 0.18 - number / 1000) for number in range(1, 9)]
    likely = AnswerEstimate(0.1, {found[2].memory_id: 0.05})
    assert 3 in select("What is my van?", *found, answers=likely)
    assert 3 not in select("What is my van?", *found)
