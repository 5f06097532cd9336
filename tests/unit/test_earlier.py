"""Which artifacts of a session go into a context, and that they keep within what there is for them."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.artifact_selection import ArtifactSelector, select_artifacts
from newton.cognition.assembly.assembler import AssemblyResult, assemble
from newton.cognition.assembly.budget import allocate_budget, reserve_layer
from newton.cognition.assembly.fill import SESSION_LAYER
from newton.cognition.request import SentMessages
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.cognition.sources.session_artifacts import ArtifactPolicy, is_searchable
from newton.content.profiles import load_profiles
from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import RetrievedMemory
from newton.providers import token_counter
from tests.unit.assembling import make_setting, said

SESSION = UUID(int=1)
PROFILE = load_profiles()["evidence"]


def artifact(
    number: int, *, cosine: float = 0.5, share: float = 0.0, text: str = "the kettle is blue"
) -> RetrievedMemory:
    near = SINGLE_PRECISION.unpack(SINGLE_PRECISION.pack(cosine, share, cosine))
    memory = said(number, text, prefix="[2026-11-20] Ana: ", kind="artifact", thread_id=SESSION, position=number)
    return memory._replace(trust="tool", quarantined=True, similarity=near[0], lexical=near[1], relevance=near[2])


def line(number: int, said: str) -> RetrievedMemory:
    return artifact(number, text=said)._replace(kind="exchange", quarantined=False, trust="user")


def told(
    found: Sequence[RetrievedMemory],
    *,
    budget: int = 8_000,
    selecting: ArtifactPolicy | None = None,
    view: SentMessages | None = None,
) -> AssemblyResult:
    earlier = ArtifactSelector(policy=selecting or ArtifactPolicy(), line_ranges={f.memory_id: (3, 5) for f in found})
    most = earlier.reserve_tokens([f for f in found if f.kind == "artifact"], view)
    setting = make_setting(
        input="where is it?",
        budget=reserve_layer(allocate_budget(budget), "session", most),
        sent_messages=view,
        artifact_selector=earlier,
    )
    return assemble([ScoredMemory(f, (1.0,) * len(FEATURE_NAMES), f.relevance) for f in found], setting)


def reasons(assembly: AssemblyResult) -> dict[int, str]:
    return {c.memory_id.int: c.reason for c in assembly.candidates}


def test_each_candidate_has_its_place_or_the_reason_why_it_is_out() -> None:
    # S004-4, S004-8, S004-9
    shown = told([artifact(n, cosine=c, text=f"thing {n}") for n, c in enumerate([0.9, 0.2, 0.6, 0.7, 0.5], 1)])
    assert shown.block.text.splitlines() == [
        "## Earlier in This Session",
        "- [2026-11-20] Ana: thing 1",
        "- [2026-11-20] Ana: thing 4",
        "- [2026-11-20] Ana: thing 3",
    ]
    assert reasons(shown) == {
        1: "fits the budget of its layer: number 1 of the session's artifacts, by meaning and words",
        4: "fits the budget of its layer: number 2 of the session's artifacts, by meaning and words",
        3: "fits the budget of its layer: number 3 of the session's artifacts, by meaning and words",
        5: "not among the best 3 artifacts of the session, by meaning and words",
        2: "too far from the input: similarity 0.20, minimum 0.25",
    }


def test_words_count_in_the_order_only_when_re_ranking_is_on_or_no_vector_is_there() -> None:
    # S004-9
    near, worded = artifact(1, cosine=0.6), artifact(2, cosine=0.5, share=1.0)
    first = {
        rerank: next(
            iter(
                select_artifacts(
                    [near, worded], ArtifactSelector(policy=ArtifactPolicy(rerank_candidates=rerank)), None
                ).selected
            )
        )
        for rerank in (0, 20)
    }
    assert first == {0: near.memory_id, 20: worded.memory_id}
    assert (ArtifactPolicy(rerank_candidates=0).candidate_count, ArtifactPolicy().candidate_count) == (5, 20)
    # without a vector the words decide
    places = select_artifacts(
        [artifact(1, cosine=0.0, share=0.5), artifact(2, cosine=0.0, share=0.2)], ArtifactSelector(), None
    ).selected
    assert list(places) == [UUID(int=1)]


def test_what_the_conversation_or_the_context_has_is_left_out() -> None:
    # S004-6
    for first, unsent, out in ((3, frozenset[int](), True), (4, frozenset[int](), False), (0, frozenset({4}), False)):
        shown = told(
            [artifact(1)], view=SentMessages(session_id=SESSION, first_position=first, unsent_positions=unsent)
        )
        assert ("sent to the model" in reasons(shown)[1]) is out
    # what a line of the context tells already is not told again and another takes its place
    said = line(9, "So: the kettle is blue, we think.")
    others = [artifact(n, cosine=0.4, text=f"thing {n}") for n in range(2, 5)]
    shown = told([artifact(1, cosine=0.9), *others, said])
    assert reasons(shown)[1] == "repeats a message of the context"
    assert shown.block.text.count("thing") == 3


def test_a_large_one_takes_the_place_of_small_ones_that_lines_tell_already() -> None:
    # S004-4, S004-8
    small = [artifact(n, cosine=0.9, text=f"pier {n} is closed") for n in (1, 2, 3)]
    lines = [line(10 + n, f"So: pier {n} is closed, we think.") for n in (1, 2, 3)]
    large = artifact(4, cosine=0.5, text="the ferry waits at the northern pier " * 10)
    shown = told([*small, large, *lines])
    assert large.summary_tokens > sum(one.summary_tokens for one in small)
    assert {reasons(shown)[n] for n in (1, 2, 3)} == {"repeats a message of the context"}
    assert (
        reasons(shown)[4] == "fits the budget of its layer: number 1 of the session's artifacts, by meaning and words"
    )
    assert shown.layers[SESSION_LAYER].used <= shown.layers[SESSION_LAYER].share == 800


def test_the_section_is_there_only_for_something_and_leaves_the_rest_to_others() -> None:
    said = [line(10 + n, f"{n}: {'the ferry waits there ' * 8}") for n in range(60)]
    budget = 1_200
    beside, alone = (told([*few, *said], budget=budget) for few in ([artifact(1)], []))
    without, (small,) = alone.block.tokens, [c for c in beside.candidates if c.kind == "artifact"]
    assert small.detail
    assert beside.layers[SESSION_LAYER].share > 10 * small.tokens
    assert beside.block.tokens >= without - max(one.summary_tokens for one in said), "no more than a line is left over"
    assert SESSION_LAYER not in told([artifact(1, cosine=0.1)]).layers
    assert reserve_layer(allocate_budget(4_000), "session", 0) == allocate_budget(4_000)


ARTIFACTS = st.lists(
    st.tuples(st.floats(-1, 1, width=32), st.floats(0, 1, width=32), st.text(min_size=1, max_size=1_500)), max_size=12
)


@given(ARTIFACTS, st.integers(0, 3_000), st.integers(0, 900), st.integers(0, 12))
def test_a_smaller_final_number_costs_no_more_and_the_ceiling_holds(
    drawn: list[tuple[float, float, str]], budget: int, most: int, final: int
) -> None:
    # S004-10, S004-19
    found = [artifact(n, cosine=c, share=w, text=said) for n, (c, w, said) in enumerate(drawn, 1)]
    costs = list[int]()
    for top in (final, final + 1, final + 2):
        shown = told(found, budget=max(budget, 1), selecting=ArtifactPolicy(max_selected=top, max_tokens=most))
        costs.append(shown.block.tokens)
        assert shown.block.tokens == token_counter.count(shown.block.text) <= min(most, max(budget, 1))
        assert {c.memory_id for c in shown.candidates} == {f.memory_id for f in found}
        assert sum(c.detail is not None for c in shown.candidates) <= top
    assert costs == sorted(costs)


@given(st.integers(0, 20_000), st.integers(0, 5_000))
def test_the_flexible_layers_pay_for_the_session(total: int, most: int) -> None:
    before, after = allocate_budget(total), reserve_layer(allocate_budget(total), "session", most)
    assert sum(after.layers.values()) <= sum(before.layers.values()) <= total
    assert after.layers.get(SESSION_LAYER, 0) <= most
    assert all(after.layers[name] == before.layers[name] for name in before.layers.keys() - before.flexible)


@pytest.mark.parametrize(("text", "long_enough"), [("ok", False), ("  why?   \n ", False), ("the ferries", True)])
def test_nothing_is_looked_for_by_an_input_of_a_few_letters(text: str, long_enough: bool) -> None:
    assert is_searchable(text) is long_enough


def test_what_is_superseded_or_too_large_makes_way() -> None:
    gone = artifact(1)._replace(state="SUPERSEDED")
    assert reasons(told([gone, artifact(2)]))[1] == "superseded"
    # one that is too large for what is left makes way for smaller ones
    large, small = artifact(1, cosine=0.9, text="a very long account " * 60), artifact(2, cosine=0.5)
    assert reasons(told([large, small], selecting=ArtifactPolicy(max_tokens=60))) == {
        1: "no room left",
        2: "fits the budget of its layer: number 1 of the session's artifacts, by meaning and words",
    }
