"""How a context's tokens are split."""

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.budget import DEFAULT_TOTAL, FIXED, FLEXIBLE, NOTE, allocate


def test_the_default_layers_are_those_of_the_design() -> None:
    # S002-2: 8,000 in all; the note's 100 come out of the flexible part
    layers = allocate(8_000).layers
    assert DEFAULT_TOTAL == 8_000
    assert {name: layers[name] for name in FIXED} == {"identity": 500, "censors": 300, "frame": 500, "working": 700}
    assert layers["note"] == 100
    flexible = [layers[name] for name in FLEXIBLE]
    assert sum(flexible) <= 5_900
    assert [round(tokens / sum(flexible), 2) for tokens in flexible] == [0.33, 0.25, 0.25, 0.17]


def test_a_frame_moves_tokens_between_flexible_layers_only() -> None:
    # S002-7
    leaning = allocate(8_000, shares={"decisions": 1, "facts": 0, "procedures": 0, "episodes": 3}).layers
    assert leaning["episodes"] == 3 * leaning["decisions"]
    assert leaning["facts"] == 0
    assert leaning["identity"] == FIXED["identity"]


SHARES = st.fixed_dictionaries({name: st.integers(0, 5_000) for name in FLEXIBLE})


@given(st.integers(1, 200_000), SHARES)
def test_the_layers_never_add_up_to_more_than_the_total(total: int, shares: dict[str, int]) -> None:
    # S002-3
    layers = allocate(total, shares=shares).layers
    assert set(layers) == {*FIXED, *FLEXIBLE, *NOTE}
    assert all(tokens >= 0 for tokens in layers.values())
    assert sum(layers.values()) <= total
