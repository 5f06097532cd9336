"""The lines of an identity: what stands, what fits, and what is the same or against each other."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.render import count_header_tokens, render
from newton.cognition.assembly.sections import select_identity_lines
from newton.heart.identity.tenets import (
    IDENTITY_PARTS,
    Identity,
    IdentityPart,
    IdentityTenet,
    LineRelation,
    compare_lines,
    diff_tenets,
    fingerprint,
    render_tenet,
)
from newton.providers import token_counter
from tests.cases import load_cases

WORDS = st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=60)


def tenet(number: int, part: IdentityPart, words: str) -> IdentityTenet:
    return IdentityTenet(
        tenet_id=UUID(int=number), part=part, text=words, tokens=token_counter.count(render_tenet(part, words))
    )


def identity(*lines: tuple[IdentityPart, str]) -> Identity:
    return Identity(1, tuple(tenet(n, part, words) for n, (part, words) in enumerate(lines)))


LINES = st.lists(
    st.tuples(st.sampled_from(IDENTITY_PARTS), WORDS.filter(lambda words: words.strip() != "")), max_size=12
)


def test_what_bars_an_action_stands_first_and_what_has_no_room_leaves_no_word() -> None:
    # S002-13
    mixed: tuple[IdentityPart, ...] = ("character", "preference", "boundary", "instruction", "value", "protocol")
    lines: list[tuple[IdentityPart, str]] = [(part, "Cite") for part in mixed]
    shown = select_identity_lines(identity(*lines), max_tokens=500)
    assert [one.part for one in shown.shown] == list(IDENTITY_PARTS)
    assert shown.blocks[1].text == "- The user says: Cite\n"
    # what has no room leaves no word in the text
    shown = select_identity_lines(
        identity(("boundary", "No legal advice"), ("value", "Honest before kind")), max_tokens=8
    )
    assert [block.text for block in shown.blocks] == ["- No legal advice\n"]
    assert shown.as_json() == {"version": 1, "shown": [str(UUID(int=0))], "unshown": [str(UUID(int=1))]}
    a, b, c = (UUID(int=n) for n in range(3))
    assert diff_tenets([a, b], [b, c]) == ((c,), (a,))


@given(LINES, st.integers(0, 400))
def test_only_whole_lines_stand_and_their_tokens_add_up(lines: list[tuple[IdentityPart, str]], most: int) -> None:
    # S002-3, S002-12
    shown = select_identity_lines(identity(*lines), max_tokens=most)
    assert sorted((*shown.shown, *shown.omitted), key=lambda one: one.tenet_id) == list(identity(*lines).tenets)
    assert sum(one.tokens for one in shown.shown) <= most
    page = render({"identity": shown.blocks}, header_tokens=count_header_tokens(token_counter.count))
    assert token_counter.count(page.text) == page.tokens if page.text else page.tokens == 0
    assert page.text.count("\n") == len(shown.shown) + bool(shown.shown)


@given(LINES, st.integers(0, 400), st.integers(0, 100))
def test_more_room_never_loses_a_line(lines: list[tuple[IdentityPart, str]], most: int, more: int) -> None:
    small, large = (select_identity_lines(identity(*lines), max_tokens=room) for room in (most, most + more))
    assert large.shown[: len(small.shown)] == small.shown
    assert not small.omitted or small.shown + small.omitted == large.shown + large.omitted


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Answer in French, please!", "answer in french please", True),
        ("Answer in French", "Answer in German", False),
        ("⚓", "✈", False),
        ("C++", "C", True),
    ],
)
def test_case_and_punctuation_do_not_make_other_words(one: str, other: str, same: bool) -> None:
    assert (fingerprint(one) == fingerprint(other)) is same


RELATIONS: dict[LineRelation | None, str] = {"same": "same", "against": "against", None: "neither"}


@pytest.mark.parametrize("expected", RELATIONS)
def test_two_lines_are_the_same_against_each_other_or_neither(expected: LineRelation | None) -> None:
    for one, other in load_cases(__file__)[RELATIONS[expected]]:
        assert compare_lines(one, other) == compare_lines(other, one) == expected, one
        assert compare_lines(one, one) == "same"
