"""Identities and the clock."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton import ids
from newton.clock import ManualClock, SystemClock, monotonic_ms
from newton.memory.memory import TRUST_TIERS, UNTRUSTED_TIERS, Trust, digest, lowest_trust
from tests.support import NOON


def test_ids_are_uuidv7_in_the_order_in_which_they_were_made_in_any_thread() -> None:
    made = [ids.new_id() for _ in range(2_000)]
    assert {one.version for one in made} == {7}
    assert made == sorted(set(made))
    assert type(made[0]) is UUID

    # ids made by several threads are all different
    def thousand(_: int) -> list[UUID]:
        return [ids.new_id() for _ in range(1_000)]

    with ThreadPoolExecutor(4) as pool:
        made = [one for many in pool.map(thousand, range(4)) for one in many]
    assert len(set(made)) == 4_000


def test_the_same_name_is_the_same_agent_and_tools_and_the_web_are_quarantined() -> None:
    assert ids.derive_agent_id("ana") == UUID("dfa7e2fe-bab3-576e-8a8c-a13c4f661ae8")
    assert ids.derive_model_id("m/1") == UUID("56b2d3a8-b51a-5d8e-9b08-e9bcdd5c0731")
    assert UNTRUSTED_TIERS == set(TRUST_TIERS[3:]) == {"tool", "web"}
    with pytest.raises(ValueError, match="empty"):
        lowest_trust([])


@given(st.text(), st.text())
def test_different_names_are_different_agents_and_models(one: str, other: str) -> None:
    assert (ids.derive_agent_id(one) == ids.derive_agent_id(other)) == (one == other)
    assert (ids.derive_model_id(one) == ids.derive_model_id(other)) == (one == other)
    assert ids.derive_agent_id(one) != ids.derive_model_id(one)


def test_the_clocks_are_in_utc_and_never_run_back() -> None:
    assert SystemClock().now().tzinfo is UTC
    laps = [monotonic_ms() for _ in range(100)]
    assert laps == sorted(laps)
    # a stepped clock moves only when told
    clock = ManualClock(NOON)
    assert clock.now() == clock.now() == NOON
    clock.advance(timedelta(hours=5))
    assert clock.now() - NOON == timedelta(hours=5)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_a_digest_tells_its_parts_apart(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)
    assert len(digest(*one)) == 32


@given(st.lists(st.sampled_from(TRUST_TIERS), min_size=1, max_size=6))
def test_what_is_derived_is_trusted_as_its_least_trusted_source(tiers: list[Trust]) -> None:
    lowest = lowest_trust(tiers)
    assert lowest in tiers
    assert all(TRUST_TIERS.index(tier) <= TRUST_TIERS.index(lowest) for tier in tiers)
    assert lowest_trust(tiers[::-1]) == lowest
