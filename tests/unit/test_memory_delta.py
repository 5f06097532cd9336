"""What a context adds to the blocks that were sent before."""

from datetime import date
from typing import Any

import pytest

from newton.agent.prompting.memory_delta import (
    INPUT_HEADER,
    MEMORY_HEADER,
    NewContext,
    ReplacedFact,
    SentContext,
    build_block,
    list_rules,
)
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END
from newton.cognition.assembly.sections import EMPTY_RANGE, NOTHING_KNOWN, UNCERTAIN

DAY = date(2026, 5, 4)
RULES = "## Identity\n- I am Ada.\n## Active Constraints\n- **BLOCK:** push to main — reviews\n"
FRAME = "## Current Approach: question\nConsider: What is known?\nConstraints: No guess.\n"
BY_MODEL = "- said by the assistant, 2 May: Pip sings.\n"
FACTS = f"## Known Information\n- #0123456789 2 May: Omar leads.\n{BY_MODEL}- unsettled: Tea is hot.\nor Tea is cold.\n"
PAST = "## Past Experience\n2026-05-02:\n- User: We met.\n- User: It rained.\n2026-05-03:\n- User: It rained.\n"
IN_FORCE = ("- I am Ada.\n", "- **BLOCK:** push to main — reviews\n")


def first(text: str, **fields: Any) -> NewContext:
    return NewContext(text=text, today=DAY, rules=IN_FORCE, **fields)


def sent(*blocks: str) -> SentContext:
    return SentContext(system=RULES, day=DAY, blocks=blocks)


def test_a_block_has_only_what_is_new() -> None:
    block = build_block(first(RULES + FRAME + FACTS + PAST), sent())
    system = f"=== System, Monday, 4 May 2026 ===\n{FRAME}"
    assert block == f"{system}{MEMORY_HEADER}{FACTS}{PAST}{INPUT_HEADER}"
    assert build_block(first(RULES + FACTS + PAST), sent(block)) == ""
    # a new line comes below its heading and a known one not again
    before = build_block(first(RULES + FACTS + PAST), sent())
    later = FACTS.replace("2 May", "4 May") + "- Lena cooks.\n" + PAST + "- User: It snowed.\n"
    assert build_block(first(RULES + later), sent(before)) == (
        f"{MEMORY_HEADER}## Known Information\n- Lena cooks.\n"
        f"## Past Experience\n2026-05-03:\n- User: It snowed.\n{INPUT_HEADER}"
    )
    before = build_block(first(RULES + FACTS), sent())
    later = "## Known Information\n- #0123456789 until 3 May: Omar leads.\n- unsettled: Tea is hot.\nor Tea is iced.\n"
    assert build_block(first(RULES + later), sent(before)) == MEMORY_HEADER + later + INPUT_HEADER
    # text of tools stays within its fence
    both, new = (f"{FENCE_BEGIN}{lines}{FENCE_END}" for lines in ("- a\n- b\n", "- b\n"))
    before = build_block(first(f"{RULES}{PAST}{FENCE_BEGIN}- a\n{FENCE_END}"), sent())
    block = build_block(first(RULES + PAST + both), sent(before))
    assert block == f"{MEMORY_HEADER}## Past Experience\n{new}{INPUT_HEADER}"


def test_rules_are_added_and_lifted_once_each() -> None:
    new = "- Rule of the user (2026-05-04): Never suggest nuts\n"
    added = build_block(NewContext(text="", today=DAY, rules=(*IN_FORCE, new)), sent())
    assert added == f"=== System, Monday, 4 May 2026 ===\nIn force from now on:\n{new}{INPUT_HEADER}"
    assert build_block(NewContext(text="", today=DAY, rules=(*IN_FORCE, new)), sent(added)) == ""
    lifted = build_block(NewContext(text="", today=DAY, rules=IN_FORCE), sent(added))
    assert lifted == f"=== System, Monday, 4 May 2026 ===\nNo longer in force:\n{new}{INPUT_HEADER}"
    assert build_block(NewContext(text="", today=DAY, rules=IN_FORCE), sent(added, lifted)) == ""
    again = build_block(NewContext(text="", today=DAY, rules=(*IN_FORCE, new)), sent(added, lifted))
    assert again == added
    kept = frozenset({IN_FORCE[1]})
    assert build_block(NewContext(text="", today=DAY, rules=IN_FORCE[:1], kept_rules=kept), sent()) == ""
    assert build_block(NewContext(text="", today=DAY, rules=None), sent()) == ""
    count = "- 2 more identity lines are not shown for lack of room.\n"
    assert list_rules(f"## Identity\n- I am Ada.\n{count}") == ["- I am Ada.\n"]


def test_another_day_and_a_replaced_fact_are_named_once() -> None:
    later = date(2026, 5, 6)
    block = build_block(NewContext(text="", today=later, rules=IN_FORCE), sent())
    assert block == f"=== System, Wednesday, 6 May 2026 ===\n{INPUT_HEADER}"
    assert build_block(NewContext(text="", today=later, rules=IN_FORCE), sent(block)) == ""
    # a replaced fact is named once with what holds now
    fact = ReplacedFact("Omar leads.", ("Lena leads.",))
    block = build_block(first(RULES, replaced=[fact, ReplacedFact("It rains.")]), sent())
    assert block == f"{MEMORY_HEADER}## No Longer True\n- Omar leads. Now: Lena leads.\n- It rains.\n{INPUT_HEADER}"
    assert build_block(first(RULES, replaced=[fact]), sent(block)) == ""
    notes = "".join(f"- {note}\n" for note in (NOTHING_KNOWN, UNCERTAIN, EMPTY_RANGE.format("in May")))
    assert build_block(first(f"{RULES}## Note\n{notes}"), sent()) == ""


def test_a_frame_is_described_once_and_then_named_with_each_input_that_it_fits() -> None:
    other = FRAME.replace("question", "task")
    blocks = [build_block(first(RULES + FRAME), sent())]
    for frame in (other, FRAME, FRAME, "", other):
        blocks.append(build_block(first(RULES + frame), sent(*blocks)))
    name = "=== System, Monday, 4 May 2026 ===\n## Current Approach: {} (as above)\n" + INPUT_HEADER
    assert other in blocks[1]
    assert blocks[2:] == [name.format("question"), name.format("question"), "", name.format("task")]
    for field in ("is_new", "shows_frame"):
        assert build_block(first(RULES + FRAME, **{field: False}), sent(*blocks)) == ""


def test_goals_and_tasks_are_sent_whole_when_they_change_and_their_end_is_said() -> None:
    tasks = "## Tasks\n- Goal, and now: Bake.\n"
    block = build_block(first(RULES + tasks), sent())
    assert build_block(first(RULES + tasks), sent(block)) == ""
    more = tasks + "- Done: Buy flour.\n"
    assert build_block(first(RULES + more), sent(block)) == MEMORY_HEADER + more + INPUT_HEADER
    ended = build_block(first(RULES), sent(block))
    assert ended == f"{MEMORY_HEADER}## Tasks\n- None any more.\n{INPUT_HEADER}"
    assert build_block(first(RULES), sent(block, ended)) == ""


@pytest.mark.parametrize(
    ("fact", "successors", "shown"),
    [
        ("I am a potter since forty years.", ("Before we begin: sign no letter for me.",), None),
        ("Rolf, who lives next door, has a Volvo V70.", ("Rolf lives next door.",), None),
        ("Rolf drives a Volvo.", ("Rolf drives.", "Rolf drives an electric Kia."), "Rolf drives an electric Kia."),
        ("Die Miete kostet 900 Euro.", ("Die Miete kostet 950 Euro.",), "Die Miete kostet 950 Euro."),
        ("Mi hermana vive en Sevilla.", ("No me gusta el pan.",), None),
        ("push to main", ("We push to main on Fridays.",), None),
    ],
)
def test_only_what_says_another_value_of_the_same_replaces_a_fact_and_no_rule_in_force_is_replaced(
    fact: str, successors: tuple[str, ...], shown: str | None
) -> None:
    block = build_block(first(RULES, replaced=[ReplacedFact(fact, successors)]), sent())
    assert block == (f"{MEMORY_HEADER}## No Longer True\n- {fact} Now: {shown}\n{INPUT_HEADER}" if shown else "")


def test_a_fact_that_holds_again_is_sent_again_and_may_be_replaced_again() -> None:
    omar, lena = (
        "## Known Information\n- #0123456789 Omar leads.\n",
        "## Known Information\n- #0987654321 Lena leads.\n",
    )
    to_lena, to_omar = ReplacedFact("Omar leads.", ("Lena leads.",)), ReplacedFact("Lena leads.", ("Omar leads.",))
    blocks = [build_block(first(RULES + omar), sent())]
    for text, replaced in ((lena, to_lena), (omar, to_omar), (lena, to_lena), (omar, to_omar)):
        blocks.append(build_block(first(RULES + text, replaced=[replaced]), sent(*blocks)))
        assert f"{replaced.text} Now: {replaced.successor}\n{text}" in blocks[-1]
    withdrawn = ReplacedFact("Omar leads.")
    blocks.append(build_block(first(RULES, replaced=[withdrawn]), sent(*blocks)))
    assert build_block(first(RULES + omar), sent(*blocks)) == MEMORY_HEADER + omar + INPUT_HEADER
