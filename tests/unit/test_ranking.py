"""Relevance: meaning, words, and what neighbours lend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.ids import new_id
from newton.memory.ranking import (
    DEFAULT_WEIGHTS,
    LONG_TEXT_FACTOR,
    LONG_TEXT_WORDS,
    MAX_NEIGHBOUR_SOURCES,
    PreferredMemories,
    RankingWeights,
    SearchHit,
    find_named_speakers,
    find_neighbours,
    normalize_by_max,
    score_relevance,
)

THREAD, OTHER = new_id(), new_id()
SHARES = st.floats(0, 1)
HITS = st.lists(
    st.builds(
        SearchHit,
        memory_id=st.uuids(),
        kind=st.just("exchange"),
        similarity=st.floats(-1, 1),
        lexical=SHARES,
        word_count=st.integers(0, 500),
        thread_id=st.sampled_from([THREAD, OTHER, None]),
        position=st.integers(0, 8),
        speaker=st.sampled_from(["Ana", "User", None]),
        is_long=st.just(False),
    ),
    max_size=12,
    unique_by=lambda hit: (hit.thread_id, hit.position),
)


def hit(
    similarity: float = 0.0,
    *,
    lexical: float = 0.0,
    words: int = 10,
    place: int | None = None,
    speaker: str | None = None,
) -> SearchHit:
    return SearchHit(
        new_id(), "exchange", words, THREAD if place is not None else None, place, speaker, False, similarity, lexical
    )


def test_meaning_and_words_add_up() -> None:
    assert score_relevance([hit(0.4, lexical=0.5)]) == [pytest.approx(0.4 + DEFAULT_WEIGHTS.lexical * 0.5)]
    # the words of a long text count less
    just, longer = score_relevance(
        [hit(lexical=0.6, words=LONG_TEXT_WORDS), hit(lexical=0.6, words=LONG_TEXT_WORDS + 1)]
    )
    assert longer == pytest.approx(LONG_TEXT_FACTOR * just)
    assert score_relevance([]) == []
    assert normalize_by_max([]) == []
    assert normalize_by_max([0.0, -1.0]) == [0.0, 0.0]
    # what counts nothing changes nothing
    hits = [hit(0.4, lexical=0.5, place=1, speaker="Ana"), hit(0.1, lexical=0.2, place=2)]
    assert score_relevance(
        hits, RankingWeights(lexical=0, neighbours=(), speaker=0), frozenset({"Ana"})
    ) == pytest.approx([0.4, 0.1])
    assert score_relevance(hits, RankingWeights(similarity=0, neighbours=())) == pytest.approx([1.5 * 0.5, 1.5 * 0.2])


@pytest.mark.parametrize(("distance", "part"), [*enumerate(DEFAULT_WEIGHTS.neighbours, 1), (3, 0.0)])
def test_a_neighbour_lends_the_less_the_further_it_stands(distance: int, part: float) -> None:
    for place in (5 - distance, 5 + distance):
        assert score_relevance([hit(0.8, place=5), hit(0.0, place=place)])[1] == pytest.approx(part * 0.8)


def test_speakers_neighbours_and_messages_of_the_task_rank_higher() -> None:
    # S002-9, S001-37
    assert score_relevance([hit(0.8, place=4), hit(0.0, place=5), hit(0.6, place=6)])[1] == pytest.approx(0.5 * 0.8)
    far = score_relevance([hit(0.8, place=1), hit(0.0, place=2), hit(0.0, place=3), hit(0.0, place=4)])
    assert far[1:] == [pytest.approx(0.4), pytest.approx(0.2), pytest.approx(0.0)]
    assert score_relevance([hit(0.8, place=4)._replace(thread_id=OTHER), hit(0.1, place=5)])[1] == pytest.approx(0.1)
    assert score_relevance([hit(0.8), hit(0.1, place=5)])[1] == pytest.approx(0.1)
    # a line of a speaker whom the input names counts more
    lines = [hit(0.4, speaker="Ana"), hit(0.4, speaker="Marta"), hit(0.4)]
    speakers = find_named_speakers("What did Ana say to the user?", [line.speaker for line in lines])
    assert score_relevance(lines, DEFAULT_WEIGHTS, speakers) == pytest.approx([0.4 + DEFAULT_WEIGHTS.speaker, 0.4, 0.4])
    # messages of the task and what was made of them rank higher
    made = hit(0.1)._replace(kind="fact", thread_id=None, position=None)
    hits = [hit(0.4, place=5), hit(0.4, place=50), hit(0.4, place=500), made]
    task = PreferredMemories(ranges=((THREAD, 40, 60),), ids=frozenset({made.memory_id}))
    plain, ranked = score_relevance(hits), score_relevance(hits, preferred=task)
    gains = [after - before for before, after in zip(plain, ranked, strict=True)]
    assert gains == pytest.approx([0, DEFAULT_WEIGHTS.task, 0, DEFAULT_WEIGHTS.task])
    away = PreferredMemories(ranges=((OTHER, 40, 60),))
    assert score_relevance(hits, preferred=away) == plain


@given(HITS)
def test_the_order_of_arrival_does_not_matter(hits: list[SearchHit]) -> None:
    forwards = score_relevance(hits)
    assert score_relevance(hits[::-1])[::-1] == forwards


@given(HITS, st.integers(0, 11))
def test_a_better_hit_never_loses_by_it(hits: list[SearchHit], which: int) -> None:
    if which < len(hits):
        one = hits[which]
        better = one._replace(similarity=(one.similarity or 0.0) + 0.1)
        raised = score_relevance([*hits[:which], better, *hits[which + 1 :]])
        assert all(after >= before - 1e-9 for before, after in zip(score_relevance(hits), raised, strict=True))
        assert raised[which] > score_relevance(hits)[which]


@given(st.lists(st.floats(-10, 10)))
def test_stretched_scores_keep_their_order_in_zero_to_one(scores: list[float]) -> None:
    parts = normalize_by_max(scores)
    assert all(0 <= part <= 1 for part in parts)
    if max(scores, default=0) > 0:
        assert max(parts) == 1
    for score, part in zip(scores, parts, strict=True):
        assert all(part <= other for more, other in zip(scores, parts, strict=True) if more >= score)


@pytest.mark.parametrize(
    "text", ["what will the user do", "Banana bread?", "Assistant, Tool and User", "ana-lytics", ""]
)
def test_neither_roles_nor_parts_of_words_nor_small_letters_name_a_speaker(text: str) -> None:
    assert not find_named_speakers(text, ["Ana", "Will", "User", "Assistant", "Tool", None, "?"])


def test_the_best_lines_bring_their_neighbours() -> None:
    # S002-9
    # short answers share no word with the question
    assert sorted(find_neighbours([hit(0.8, place=0), hit(0.5, place=2), hit(0.9)])) == [
        (THREAD, 1),
        (THREAD, 3),
        (THREAD, 4),
    ]
    assert find_neighbours([hit(0.8, place=5)], RankingWeights(neighbours=())) == []
    assert find_neighbours([]) == []
    # only the best lines bring their neighbours
    hits = [hit(1 - n / 1_000, place=10 * n) for n in range(MAX_NEIGHBOUR_SOURCES + 5)]
    assert max(place for _, place in find_neighbours(hits)) == 10 * (MAX_NEIGHBOUR_SOURCES - 1) + len(
        DEFAULT_WEIGHTS.neighbours
    )


@given(HITS)
def test_no_place_is_looked_at_twice_or_stands_before_the_first(hits: list[SearchHit]) -> None:
    places = find_neighbours(hits)
    assert len(set(places)) == len(places)
    assert not {(h.thread_id, h.position) for h in hits} & set(places)
    assert all(place >= 0 for _, place in places)
