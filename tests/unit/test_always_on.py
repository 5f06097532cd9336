"""Identity and censors in a context of any size: what the input triggers is in, and what is left out is said."""

import re
from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.always_on import AlwaysOnSections, list_applicable, select_always_on
from newton.cognition.assembly.budget import allocate_budget, reserve_always_on
from newton.cognition.assembly.render import TextBlock, count_header_tokens, render
from newton.heart.censors import Censor, find_matching
from newton.heart.identity.tenets import IDENTITY_PARTS, Identity, IdentityTenet, render_tenet
from newton.memory.representations import to_bullet
from newton.providers.token_counter import count

HEADERS = count_header_tokens(count)
CEILINGS = (100, 200, 300, 500, 1_000, 2_000, 4_000, 8_000)
RULES = (
    ("order parts from {} without a second quote", "the audit asked for two offers each time"),
    ("promise {} a delivery date", "only the yard manager may commit to one"),
    ("switch off the alarm in hall {}", "the insurer requires it at night"),
    ("send the payroll of {} by mail", "salaries are confidential"),
)


def make_censor(number: int, *, domain: str | None = None) -> Censor:
    trigger, reason = (text.format(f"unit {number}") for text in RULES[number % len(RULES)])
    summary = f"**WARN:** {trigger} — {reason}"
    return Censor(
        memory_id=UUID(int=number + 1),
        state="ACTIVE",
        summary=summary,
        summary_tokens=count(to_bullet(summary)),
        match_mode="phrase",
        trigger=trigger,
        action="block" if number < 150 else "warn",
        reason=reason,
        domain=domain,
        embedding=None,
    )


def make_tenet(number: int) -> IdentityTenet:
    part = IDENTITY_PARTS[number % len(IDENTITY_PARTS)]
    text = f"Report stock of shelf {number} in metric units, and name the source of every figure"
    return IdentityTenet(UUID(int=1_000 + number), part, text, count(render_tenet(part, text)))


CENSORS = [make_censor(number) for number in range(200)]
IDENTITY = Identity(1, tuple(make_tenet(number) for number in range(30)))


def select(
    text: str, ceiling: int, censors: Sequence[Censor] = CENSORS, identity: Identity = IDENTITY
) -> tuple[AlwaysOnSections, TextBlock, set[UUID]]:
    """Return the sections, the rendered text and the triggered censors."""
    triggered = {one.memory_id for one in find_matching(censors, text, ())}
    sections = select_always_on(
        identity, censors, triggered=triggered, max_tokens=ceiling, header_tokens=HEADERS, count_tokens=count
    )
    blocks = {"identity": sections.identity.blocks, "censors": sections.censors.blocks}
    return sections, render(blocks, header_tokens=HEADERS), triggered


def said_omitted(text: str, noun: str) -> int:
    found = re.search(rf"- (\d+) more {noun}s? (?:is|are) not shown for lack of room\.\n", text)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("ceiling", CEILINGS)
@pytest.mark.parametrize("numbers", [(), (7,), (199,), (3, 180)])
def test_what_the_input_triggers_is_in_and_what_is_left_out_is_said(ceiling: int, numbers: tuple[int, ...]) -> None:
    # S002-3: 200 censors and 30 identity lines
    text = "Please do it now: " + ", and ".join(CENSORS[number].trigger for number in numbers)
    sections, page, triggered = select(text, ceiling)
    shown = {line.memory_id for line in sections.censors.lines}
    assert len(triggered) == len(numbers)
    assert triggered <= shown or (ceiling == 100 and len(triggered & shown) >= 1)
    assert page.tokens == count(page.text) <= ceiling
    assert page.tokens == sum(sections.tokens.values())
    assert said_omitted(page.text, "constraint") == len(sections.censors.omitted) == 200 - len(shown)
    assert said_omitted(page.text, "identity line") == len(sections.identity.omitted)
    budget = reserve_always_on(allocate_budget(ceiling), sections.tokens, max_tokens=ceiling)
    assert sum(budget.layers.values()) <= budget.total <= ceiling
    assert all(tokens >= 0 for tokens in budget.layers.values())


def test_nothing_is_left_out_while_it_fits_and_blocks_come_before_warnings() -> None:
    # S002-3
    blocking = CENSORS[:40]
    sections, page, _ = select("What is for lunch?", 8_000, blocking)
    assert len(sections.censors.lines) == 40 and not sections.censors.omitted and not sections.identity.omitted
    assert "lack of room" not in page.text
    exact, _, _ = select("What is for lunch?", page.tokens, blocking)
    assert exact == sections
    less, page_of_less, _ = select("What is for lunch?", page.tokens - 1, blocking)
    assert less.censors.omitted or less.identity.omitted
    assert "lack of room" in page_of_less.text
    sections, _, _ = select("What is for lunch?", 2_000)
    assert all(line.block.text.startswith("- **BLOCK:**") for line in sections.censors.lines)


@given(st.integers(0, 600), st.sets(st.integers(0, 199), max_size=5), st.integers(0, 200), st.integers(0, 30))
def test_no_ceiling_is_exceeded(ceiling: int, numbers: set[int], censors: int, lines: int) -> None:
    text = ", ".join(CENSORS[number].trigger for number in sorted(numbers))
    _, page, triggered = select(text, ceiling, CENSORS[:censors], Identity(1, IDENTITY.tenets[:lines]))
    assert page.tokens == count(page.text) <= ceiling
    smallest = min((one.summary_tokens for one in CENSORS[:censors] if one.memory_id in triggered), default=ceiling)
    if smallest + HEADERS["censors"] <= ceiling:
        assert any(one.context_line in page.text for one in CENSORS[:censors] if one.memory_id in triggered)


def test_a_censor_of_a_domain_applies_under_its_frame_or_when_it_is_triggered() -> None:
    own = make_censor(4, domain="purchasing")
    both = [own, make_censor(5)]
    assert list_applicable(both, domains=["purchasing"], triggered=frozenset()) == both
    assert list_applicable(both, domains=[], triggered=frozenset()) == both[1:]
    assert list_applicable(both, domains=[], triggered={own.memory_id}) == both
