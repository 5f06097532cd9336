"""What the sources gave becomes one list of candidates, whatever the order in which it came."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.additional import fitted, lines
from newton.cognition.candidates import candidates
from newton.cognition.filters import Filters
from newton.cognition.gather import Gathered, Knowledge, Standing, Surroundings
from newton.cognition.situation import Situation
from newton.content.profiles import Reach, widest
from newton.heart.events import Recent
from newton.heart.known import Known
from newton.memory.memory import Kind
from newton.memory.recall import Cue, Found, Recollection
from tests.support import NOON, count

FAR = Reach(depth=5, salient=100, events=200, sessions=50)


def found(number: int, kind: Kind = "event", relevance: float = 0.0) -> Found:
    said = f"memory {number}"
    plain = (said, said, 3, 3, 2, None, None, None, 0, NOON, NOON, None, None, "user", False, None, None, None)
    return Found._make((UUID(int=number), kind, "ACTIVE", *plain, 0.0, 0.0, relevance))


def gathered(**given: object) -> Gathered:
    plain = Gathered(
        recalled=Recollection(cue=Cue(text="x"), found=[], missing={}),
        surroundings=Surroundings(standing=Standing(), situation=Situation(), missing={}),
        core=None,
        missing={},
    )
    return replace(plain, **given)  # pyright: ignore[reportArgumentType]  # named fields


def recalled(*found: Found) -> Recollection:
    return Recollection(cue=Cue(text="x"), found=found, missing={})


NUMBERS = st.lists(st.integers(1, 12), max_size=8, unique=True)


@given(NUMBERS, NUMBERS, NUMBERS, st.data())
def test_each_memory_is_a_candidate_once_whatever_the_order_of_arrival(
    searched: list[int], late: list[int], named: list[int], data: st.DataObject
) -> None:
    # S001-16: deduplicated by id
    def at_hand(*orders: list[int]) -> dict[UUID, Found]:
        first, second, third = orders
        given = gathered(
            recalled=recalled(*(found(n, relevance=0.5) for n in first)),
            recent=Recent(own=[found(n) for n in second]),
            knowledge=Knowledge(known=Known(found=[found(n) for n in third])),
        )
        every = candidates(given, "x", reach=FAR, frame="task").found
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
    who = Known(
        found=[named, near, far, salient],
        mentioned=frozenset({named.memory_id}),
        unasked=[salient.memory_id],
        steps={near.memory_id: 1, far.memory_id: 2},
    )
    late = Recent(own=own, others=[[f] for f in other])
    given = gathered(knowledge=Knowledge(known=who), recent=late)
    usual = candidates(given, "x", reach=Reach(events=2), frame="task")
    assert set(usual.found) == {named, near, *own[:2]}
    assert usual.recent == {f.memory_id for f in own[:2]}
    coding = candidates(given, "x", reach=Reach(depth=2, salient=10, events=50, sessions=5), frame="task")
    assert set(coding.found) == {named, near, far, salient, *own, *other[:5]}
    assert widest([Reach(events=2), Reach(depth=3), Reach(salient=4)]) == Reach(depth=3, salient=4, events=10)


def test_kinds_that_are_not_wanted_are_no_candidates() -> None:
    # S001-5
    given = gathered(
        recalled=recalled(found(1, "fact"), found(2, "decision")),
        practice=[found(3, "procedure")],
        filters=Filters(kinds=frozenset({"fact"})),
    )
    assert [f.kind for f in candidates(given, "x", reach=FAR, frame="task").found] == ["fact"]


@given(st.text(alphabet="ab #\n-\t", max_size=60), st.integers(-5, 60))
def test_what_a_caller_adds_stands_whole_or_not_at_all_and_begins_no_section(text: str, most: int) -> None:
    # S001-4
    blocks = lines(text, count=count)
    added = fitted(blocks, most=most)
    assert sum(block.tokens for block in added.blocks) <= max(most, 0)
    assert list(added.blocks) == blocks[: len(added.blocks)]
    assert len(added.blocks) + added.left_out == len(blocks)
    assert all(block.text.startswith("- ") and block.text.count("\n") == 1 for block in blocks)
