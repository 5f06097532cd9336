"""How the tokens of a window and of a context are split."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from newton.cognition.assembly.budget import (
    DEFAULT_TOTAL,
    FIXED_LAYERS,
    FLEXIBLE_LAYERS,
    MAX_ALL_OTHER_SESSIONS,
    MAX_OTHER_SESSIONS,
    TASK_LAYER_PERCENT,
    BudgetPart,
    allocate_budget,
    estimate_complexity,
    limit_other_sessions,
    split_budget,
)
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.content.frames import Stakes
from newton.ids import new_id
from newton.providers.context_windows import split_window


def test_the_default_layers_are_those_of_the_design_and_a_frame_moves_tokens_between_flexible_ones_only() -> None:
    # S002-2, S002-7
    # 8,000 in all; the note's 100 come out of the flexible part
    layers = allocate_budget(8_000).layers
    assert DEFAULT_TOTAL == 8_000
    assert {name: layers[name] for name in FIXED_LAYERS} == {
        "identity": 500,
        "censors": 300,
        "frame": 500,
        "working": 700,
    }
    assert layers["note"] == 100
    flexible = [layers[name] for name in FLEXIBLE_LAYERS]
    assert sum(flexible) <= 5_900
    assert [round(tokens / sum(flexible), 2) for tokens in flexible] == [0.33, 0.25, 0.25, 0.17]
    leaning = allocate_budget(8_000, shares={"decisions": 1, "facts": 0, "procedures": 0, "episodes": 3}).layers
    assert leaning["episodes"] == 3 * leaning["decisions"]
    assert leaning["facts"] == 0
    assert leaning["identity"] == FIXED_LAYERS["identity"]


SHARES = st.fixed_dictionaries({name: st.integers(0, 5_000) for name in FLEXIBLE_LAYERS})


@given(st.integers(1, 200_000), SHARES)
def test_the_layers_never_add_up_to_more_than_the_total(total: int, shares: dict[str, int]) -> None:
    # S002-3
    layers = allocate_budget(total, shares=shares).layers
    assert set(layers) == {*FIXED_LAYERS, *FLEXIBLE_LAYERS, "note"}
    assert all(tokens >= 0 for tokens in layers.values())
    assert sum(layers.values()) <= total


STAKES: list[Stakes] = ["low", "medium", "high", "critical"]


def test_the_layers_follow_the_complexity_of_the_input() -> None:
    # S002-8
    plain = allocate_budget(8_000, complexity=estimate_complexity("How are you?"), stakes="low")
    whole = allocate_budget(8_000)
    assert plain.total < whole.total
    assert all(plain.layers[name] < whole.layers[name] for name in FLEXIBLE_LAYERS)
    assert all(plain.layers[name] == whole.layers[name] for name in FIXED_LAYERS)
    # an involved decision
    asked = (
        "Should we split the monolith into services, although two of the three teams have never deployed anything "
        "themselves, because the release train blocks everybody; or would modules with enforced borders be enough?"
    )
    grown, usual = allocate_budget(8_000, complexity=estimate_complexity(asked), stakes="high"), allocate_budget(8_000)
    assert grown.total == usual.total
    assert grown.layers["decisions"] > usual.layers["decisions"]
    assert grown.layers["procedures"] > usual.layers["procedures"]
    assert grown.layers["episodes"] < usual.layers["episodes"]


@given(st.integers(0, 200_000), st.floats(0, 1), st.sampled_from(STAKES), st.booleans())
def test_what_is_allotted_stays_below_the_total_and_the_total_below_what_was_given(
    total: int, complexity: float, stakes: Stakes, stack: bool
) -> None:
    # S002-3
    budget = allocate_budget(total, complexity=complexity, stakes=stakes, has_tasks=stack)
    assert 0 <= sum(budget.layers.values()) <= budget.total <= total


def test_a_stack_of_tasks_takes_its_percentages_of_the_flexible_part() -> None:
    # S001-37, S001-26
    with_stack, without = allocate_budget(8_000, has_tasks=True).layers, allocate_budget(8_000).layers
    flexible = 8_000 - sum(FIXED_LAYERS.values()) - 100
    assert {name: with_stack[name] for name in TASK_LAYER_PERCENT} == {"root": 295, "path": 885, "siblings": 590}
    assert abs(sum(with_stack[name] for name in FLEXIBLE_LAYERS) - 0.7 * flexible) <= len(FLEXIBLE_LAYERS)
    assert not TASK_LAYER_PERCENT.keys() & without.keys()
    parts = [BudgetPart(name=name, percent=percent) for name, percent in (("a", 20), ("b", 40), ("c", 20), ("d", 20))]
    assert split_budget(999, parts) == {"a": 199, "b": 399, "c": 199, "d": 199}


SIZES = st.none() | st.integers(0, 500)
PARTS = st.lists(
    st.builds(
        BudgetPart,
        name=st.uuids().map(str),
        fixed=SIZES,
        percent=st.none() | st.floats(0, 60),
        weight=st.integers(0, 1_000).map(float),
        floor=st.integers(0, 50),
        cap=st.none() | st.integers(50, 400),
    ),
    max_size=8,
    unique_by=lambda part: part.name,
)


@given(st.integers(0, 5_000), PARTS)
@example(1, [BudgetPart(name="a"), BudgetPart(name="b", weight=0.0, floor=1)])
def test_the_parts_of_a_budget_never_pass_it(total: int, parts: list[BudgetPart]) -> None:
    # S001-30
    given_tokens = split_budget(total, parts)
    assert sum(given_tokens.values()) <= total
    assert all(tokens >= 0 for tokens in given_tokens.values())
    for part in parts:
        assert part.cap is None or given_tokens[part.name] <= part.cap
    if sum(part.compute_base(total) for part in parts) <= total:
        assert all(given_tokens[part.name] >= part.floor for part in parts)


@given(st.integers(0, 5_000), st.integers(0, 500), PARTS)
def test_a_larger_budget_takes_from_no_part(total: int, more: int, parts: list[BudgetPart]) -> None:
    small, large = split_budget(total, parts), split_budget(total + more, parts)
    assert all(large[name] >= small[name] for name in small if small[name] > 1)


def limit_old_messages(text: str, quoted: int | None) -> int | None:
    sent = SentMessages(session_id=new_id(), first_position=0, quoted_tokens=quoted)
    return limit_other_sessions(ContextBuildRequest(agent_id=new_id(), input=text, tokens=8_000, sent_messages=sent))


def test_old_messages_are_limited_before_an_input_and_in_all_of_a_conversation() -> None:
    # S002-2
    told = "The joiner found dry rot behind the sink, so it comes to £7,900. I have said yes."
    assert limit_old_messages(told, 0) == MAX_OTHER_SESSIONS
    assert limit_old_messages(told, MAX_ALL_OTHER_SESSIONS - 100) == 100
    assert limit_old_messages(told, MAX_ALL_OTHER_SESSIONS + 100) == 0
    assert limit_old_messages(told, None) is None, "what a program is given is not sent again"
    assert limit_old_messages("Write a note to the parents about the trip.", 0) == MAX_OTHER_SESSIONS


@pytest.mark.parametrize(
    "text",
    [
        "What did I say about the kitchen?",
        "where did we leave off",
        "Pick up where we left off.",
        "which service do i use for transfers home",
        "Show me the text you wrote for the website again",
        "Back again. The kitchen is gone. What did I tell you about the joiner?",
        "Was habe ich über die Küche gesagt?",
        "¿Dónde lo dejamos?",
        "Qu'est-ce que je t'ai dit sur la cuisine ?",
    ],
)
def test_what_asks_memory_is_not_limited(text: str) -> None:
    assert limit_old_messages(text, MAX_ALL_OTHER_SESSIONS) is None


TOKENS = st.integers(0, 300_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_the_parts_never_come_to_more_than_the_window(window: int, reply: int, conversation: int, context: int) -> None:
    room = split_window(window, reply=reply, conversation=conversation, context=context)
    assert min(room) >= 0
    assert room.conversation <= conversation and room.context <= context
    assert room.conversation + room.context <= room.usable
    assert room.usable + reply <= window or room.usable == 0


def test_the_shipped_settings_leave_headroom_and_a_small_window_a_smaller_part_for_the_answer() -> None:
    # S003-13
    # at most 100,000 of 128,000
    room = split_window(128_000, reply=4_000, conversation=100_000, context=8_000)
    assert (room.usable, room.conversation, room.context) == (112_000, 100_000, 8_000)
    assert split_window(200_000, reply=4_000, conversation=100_000, context=8_000).conversation == 100_000
    assert split_window(8_000, reply=500, conversation=100_000, context=8_000).usable == 7_000
    assert split_window(8_000, reply=2_000, conversation=100_000, context=8_000).usable == 6_000
    assert split_window(1_000, reply=2_000, conversation=100, context=100) == (0, 0, 0)
