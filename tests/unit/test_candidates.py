"""What the sources gave becomes one list of candidates, whatever the order in which it came."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.sections import fit_extra_lines, render_extra_lines
from newton.cognition.relevance_model import load_relevance_model
from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.cognition.scoring.candidates import CandidateSet, collect_candidates
from newton.cognition.sources.gathered_data import AlwaysOn, GatheredSources, InputMatches, SessionContextData
from newton.cognition.sources.session_state import SessionState
from newton.content.profiles import GatherOptions, merge_gather_options
from newton.heart.entities.entity_lookup import EntityMatches
from newton.heart.events.event_store import RecentEvents
from newton.memory.memory import Kind
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from tests.support import ANA, count
from tests.unit import assembling

FAR = GatherOptions(depth=5, salient=100, events=200, sessions=50)


def found(number: int, kind: Kind = "event", relevance: float = 0.0) -> RetrievedMemory:
    return assembling.found(number, kind=kind, similarity=0.0, lexical=0.0, relevance=relevance)


def collect(given: GatheredSources, text: str, *, reach: GatherOptions) -> CandidateSet:
    request = ContextBuildRequest(agent_id=ANA, input=text, tokens=8_000, filters=given.filters)
    return collect_candidates(
        given, request, reach=reach, frame="task", relevance_model=load_relevance_model(), missing={}
    )


def gathered(**given: object) -> GatheredSources:
    plain = GatheredSources(
        recall_result=RecallResult(query=RecallQuery(text="x"), memories=[], missing={}),
        session_data=SessionContextData(always_on=AlwaysOn(), session_state=SessionState(), missing={}),
        core_vector=None,
        missing={},
    )
    return replace(plain, **given)  # pyright: ignore[reportArgumentType]  # named fields


def recalled(*found: RetrievedMemory) -> RecallResult:
    return RecallResult(query=RecallQuery(text="x"), memories=found, missing={})


NUMBERS = st.lists(st.integers(1, 12), max_size=8, unique=True)


@given(NUMBERS, NUMBERS, NUMBERS, st.data())
def test_each_memory_is_a_candidate_once_whatever_the_order_of_arrival(
    searched: list[int], late: list[int], named: list[int], data: st.DataObject
) -> None:
    # S001-16: deduplicated by id
    def at_hand(*orders: list[int]) -> dict[UUID, RetrievedMemory]:
        first, second, third = orders
        given = gathered(
            recall_result=recalled(*(found(n, relevance=0.5) for n in first)),
            recent_events=RecentEvents(current_session=[found(n) for n in second]),
            input_matches=InputMatches(entity_matches=EntityMatches(memories=[found(n) for n in third])),
        )
        every = collect(given, "x", reach=FAR).memories
        assert len(every) == len({f.memory_id for f in every})
        return {f.memory_id: f for f in every}

    mixed = [data.draw(st.permutations(order)) for order in (searched, late, named)]
    usual = at_hand(searched, late, named)
    assert at_hand(*mixed) == usual
    assert usual.keys() == {UUID(int=n) for n in (*searched, *late, *named)}
    assert all(usual[UUID(int=n)].relevance == 0.5 for n in searched), "what was searched for keeps its evidence"


def test_a_profile_takes_what_it_reaches_though_others_reach_further() -> None:
    # S001-16, S001-20, S001-21: S001's own rule for its profiles; the others take what the input names
    named, near, far, salient = found(1, "entity"), found(2, "relation"), found(3, "relation"), found(4, "entity")
    own, other = [found(n) for n in range(10, 20)], [found(n) for n in range(20, 26)]
    who = EntityMatches(
        memories=[named, near, far, salient],
        mentioned_ids=frozenset({named.memory_id}),
        salient_ids=[salient.memory_id],
        distances={near.memory_id: 1, far.memory_id: 2},
    )
    late = RecentEvents(current_session=own, other_sessions=[[f] for f in other])
    given = gathered(input_matches=InputMatches(entity_matches=who), recent_events=late)
    usual = collect(given, "x", reach=GatherOptions(events=2))
    assert set(usual.memories) == {named, near, *own[:2]}
    assert usual.recent_ids == {f.memory_id for f in own[:2]}
    coding = collect(given, "x", reach=GatherOptions(depth=2, salient=10, events=50, sessions=5))
    assert set(coding.memories) == {named, near, far, salient, *own, *other[:5]}
    assert merge_gather_options(
        [GatherOptions(events=2), GatherOptions(depth=3), GatherOptions(salient=4)]
    ) == GatherOptions(depth=3, salient=4, events=10)


def test_kinds_that_are_not_wanted_are_no_candidates() -> None:
    # S001-5
    given = gathered(
        recall_result=recalled(found(1, "fact"), found(2, "decision")),
        procedures=[found(3, "procedure")],
        filters=ContextFilters(kinds=frozenset({"fact"})),
    )
    assert [f.kind for f in collect(given, "x", reach=FAR).memories] == ["fact"]


@given(st.text(alphabet="ab #\n-\t", max_size=60), st.integers(-5, 60))
def test_what_a_caller_adds_stands_whole_or_not_at_all_and_begins_no_section(text: str, most: int) -> None:
    # S001-4
    blocks = render_extra_lines(text, count_tokens=count)
    added = fit_extra_lines(blocks, max_tokens=most)
    assert sum(block.tokens for block in added.blocks) <= max(most, 0)
    assert list(added.blocks) == blocks[: len(added.blocks)]
    assert len(added.blocks) + added.omitted_count == len(blocks)
    assert all(block.text.startswith("- ") and block.text.count("\n") == 1 for block in blocks)
