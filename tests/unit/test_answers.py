"""The probability that a memory answers a question, and the minimum that follows from it."""

from dataclasses import replace

import pytest

from newton.cognition.assembly.relevance_floor import RelevanceFloor, select_answers
from newton.cognition.questions.question_kinds import read_question
from newton.cognition.questions.question_rules import StandingStatement, choose_standing
from newton.cognition.relevance_model import load_relevance_model
from newton.cognition.scoring.relevance import estimate_answers, estimate_sufficiency
from newton.ids import derive_model_id
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from tests.unit.assembling import found

MODEL = load_relevance_model()


def fact(number: int, text: str, cosine: float, lexical: float, relevance: float) -> RetrievedMemory:
    forms = {"micro": text, "summary": text, "micro_tokens": 9, "summary_tokens": 9, "word_count": 8}
    return found(number, **forms, similarity=cosine, lexical=lexical, relevance=relevance)


ASKED = "Where does Abena keep the boat?"
RIGHT = fact(1, "Abena keeps the boat in the shed", 0.8, 0.5, 1.0)
LIKE = fact(2, "Abena drinks oat milk in her tea", 0.45, 0.12, 0.5)
NOISE = [fact(n, "Luca rides a bicycle", 0.1, 0.0, 0.1) for n in range(3, 20)]


def search(*memories: RetrievedMemory, model: str = MODEL.embedding_model) -> RecallResult:
    query = RecallQuery(text=ASKED, model_id=derive_model_id(model))
    return RecallResult(query=query, memories=memories, missing={}, known_share=0.9, text_count=300)


def test_only_a_memory_with_a_reason_of_its_own_answers() -> None:
    # S002-3
    # an item needs its own reason
    answers = estimate_answers(MODEL, search(RIGHT, LIKE, *NOISE))
    assert answers.find(RIGHT) > 0.5
    assert answers.find(LIKE) < 0.1
    assert [f.memory_id for f in select_answers(answers, [RIGHT, LIKE, *NOISE], None)] == [RIGHT.memory_id]
    assert len(select_answers(answers, [RIGHT, LIKE, *NOISE], 0)) == 19, "a minimum of 0 leaves nothing out"
    # a question on another subject gets nothing
    # the question is judged first, then each memory
    answers = estimate_answers(MODEL, search(*NOISE))
    assert answers.question is not None and answers.question < 0.2 and not answers.knows_names
    assert select_answers(answers, NOISE, None) == []
    answers = estimate_answers(MODEL, search(*NOISE, model="another/model"))
    assert answers.question is None
    assert list(select_answers(answers, NOISE, None)) == NOISE


def test_each_kind_has_its_minimum_and_what_is_left_out_lowers_the_sufficiency() -> None:
    whole, half, nothing = (
        estimate_sufficiency((0.0, 1.0), 0.9, shown=shown, found=[0.4, 0.4]) for shown in ([0.4, 0.4], [0.4], [])
    )
    assert whole == pytest.approx(0.9) and half == pytest.approx(0.45) and nothing == 0
    # each kind has its minimum
    floor = RelevanceFloor(0.08, fact_share=0.3, answer=0.0015, question=0.9)
    assert floor.find_minimum("exchange") == 0.0015
    assert floor.find_minimum("fact", best_fact=0.9) == pytest.approx(0.09)
    assert floor.find_minimum("decision") == 0.08, "decisions are judged by their topic"
    assert replace(floor, question=None).find_minimum("exchange") == 0.08


@pytest.mark.parametrize(
    ("text", "cosine", "applies"),
    [
        ("Where did Marta go on Sunday?", 0.2, False),  # another domain
        ("Where did Marta go on Sunday?", 0.3, True),
        ("Write a note to Marta.", 0.2, True),  # a request
        ("When was the fair?", 0.2, True),  # the instruction is on the form of the answer
        ("When was the fair?", 0.1, False),
    ],
)
def test_an_instruction_applies_to_inputs_of_its_domain(text: str, cosine: float, applies: bool) -> None:
    instruction = fact(1, "Always write dates with the month first.", cosine, 0.0, 0.0)
    statements = [StandingStatement(instruction, "instruction")]
    assert bool(choose_standing(read_question(text), statements, text=text, max_tokens=2_000)) is applies


def test_a_wish_on_the_form_of_answers_applies_to_every_input_once() -> None:
    wishes = [
        fact(n, text, 0.0, 0.0, 0.0) for n, text in enumerate(("Please keep answers short.", "Keep answers short!"))
    ]
    statements = [StandingStatement(one, "manner") for one in wishes]
    text = "Where did Marta go on Sunday?"
    assert list(choose_standing(read_question(text), statements, text=text, max_tokens=2_000)) == [wishes[0].memory_id]
