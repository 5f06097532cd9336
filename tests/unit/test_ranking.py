"""Relevance: meaning, words, and what neighbours lend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.ids import new_id
from newton.memory.ranking import LENT, LEXICAL_WEIGHT, LONG_FACTOR, LONG_WORDS, Hit, relevances, stretched

THREAD, OTHER = new_id(), new_id()
SHARES = st.floats(0, 1)
HITS = st.lists(
    st.builds(
        Hit,
        memory_id=st.uuids(),
        kind=st.just("exchange"),
        similarity=st.floats(-1, 1),
        lexical=SHARES,
        words=st.integers(0, 500),
        thread=st.sampled_from([THREAD, OTHER, None]),
        place=st.integers(0, 8),
    ),
    max_size=12,
    unique_by=lambda hit: (hit.thread, hit.place),
)


def hit(similarity: float = 0.0, *, lexical: float = 0.0, words: int = 10, place: int | None = None) -> Hit:
    return Hit(new_id(), "exchange", words, THREAD if place is not None else None, place, similarity, lexical)


def test_meaning_and_words_add_up() -> None:
    assert relevances([hit(0.4, lexical=0.5)]) == [pytest.approx(0.4 + LEXICAL_WEIGHT * 0.5)]


def test_the_words_of_a_long_text_count_less() -> None:
    just, longer = relevances([hit(lexical=0.6, words=LONG_WORDS), hit(lexical=0.6, words=LONG_WORDS + 1)])
    assert longer == pytest.approx(LONG_FACTOR * just)


@pytest.mark.parametrize(("distance", "part"), [*LENT, (3, 0.0)])
def test_a_neighbour_lends_the_less_the_further_it_stands(distance: int, part: float) -> None:
    for place in (5 - distance, 5 + distance):
        assert relevances([hit(0.8, place=5), hit(0.0, place=place)])[1] == pytest.approx(part * 0.8)


def test_of_two_neighbours_at_one_distance_only_the_better_lends() -> None:
    assert relevances([hit(0.8, place=4), hit(0.0, place=5), hit(0.6, place=6)])[1] == pytest.approx(0.5 * 0.8)


def test_lent_evidence_is_not_lent_on() -> None:
    far = relevances([hit(0.8, place=1), hit(0.0, place=2), hit(0.0, place=3), hit(0.0, place=4)])
    assert far[1:] == [pytest.approx(0.4), pytest.approx(0.2), pytest.approx(0.0)]


def test_a_neighbour_in_another_thread_lends_nothing() -> None:
    assert relevances([hit(0.8, place=4)._replace(thread=OTHER), hit(0.1, place=5)])[1] == pytest.approx(0.1)
    assert relevances([hit(0.8), hit(0.1, place=5)])[1] == pytest.approx(0.1)


@given(HITS)
def test_the_order_of_arrival_does_not_matter(hits: list[Hit]) -> None:
    forwards = relevances(hits)
    assert relevances(hits[::-1])[::-1] == forwards


@given(HITS, st.integers(0, 11))
def test_a_better_hit_never_loses_by_it(hits: list[Hit], which: int) -> None:
    if which < len(hits):
        one = hits[which]
        better = one._replace(similarity=(one.similarity or 0.0) + 0.1)
        raised = relevances([*hits[:which], better, *hits[which + 1 :]])
        assert all(after >= before - 1e-9 for before, after in zip(relevances(hits), raised, strict=True))
        assert raised[which] > relevances(hits)[which]


@given(st.lists(st.floats(-10, 10)))
def test_stretched_scores_keep_their_order_in_zero_to_one(scores: list[float]) -> None:
    parts = stretched(scores)
    assert all(0 <= part <= 1 for part in parts)
    if max(scores, default=0) > 0:
        assert max(parts) == 1
    for score, part in zip(scores, parts, strict=True):
        assert all(part <= other for more, other in zip(scores, parts, strict=True) if more >= score)


def test_nothing_and_nothing_good_stretch_to_nothing() -> None:
    assert relevances([]) == []
    assert stretched([]) == []
    assert stretched([0.0, -1.0]) == [0.0, 0.0]
