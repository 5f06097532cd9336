"""What a request says of its own context: single values of the profile and the frame, and a long input."""

import pytest

from newton.cognition.request import NO_OVERRIDES, ContextBuildRequest, ContextOverrides
from newton.content.frames import LayerShares
from newton.content.profiles import load_profiles
from newton.errors import InputError
from newton.memory.search_types import MAX_QUERY_CHARS
from newton.operations.declaration import load_operations
from newton.operations.runner import parse_arguments
from tests.support import ANA

PROFILES = load_profiles()


def overrides(**groups: object) -> ContextOverrides:
    return ContextOverrides.model_validate(groups)


def test_what_is_left_out_stays() -> None:
    # S001-4, S001-10
    coding = PROFILES["coding"]
    changed = overrides(weights={"recency": 0.9}, reach={"depth": 3, "failures": False}).apply_to_profile(coding)
    assert changed.weights.nonzero == {"similarity": 0.5, "recency": 0.9, "salience": 0.2}
    assert changed.reach == coding.reach.model_copy(update={"depth": 3, "failures": False})
    assert (changed.name, changed.boosts, changed.recency) == (coding.name, coding.boosts, coding.recency)
    assert coding.reach.depth == 2
    assert NO_OVERRIDES.apply_to_profile(coding) == coding
    # a profile whose weights were read is still changed
    evidence = load_profiles()["evidence"]
    assert evidence.weights.nonzero["similarity"] == 1.0
    assert overrides(weights={"similarity": 2.0}).apply_to_profile(evidence).weights.nonzero["similarity"] == 2.0


def test_a_request_has_its_own_decay_and_order() -> None:
    # S000-F2, S000-F4
    coding = PROFILES["coding"]
    changed = overrides(decay_hours=0.5, order="best_last").apply_to_profile(coding)
    assert changed.recency == coding.recency.with_time_constant(0.5) and changed.order == "best_last" != coding.order
    with pytest.raises(InputError, match="does not fall with its age"):
        overrides(decay_hours=0.5).apply_to_profile(PROFILES["important"])


def test_percentages_replace_the_shares_of_the_frame() -> None:
    # S001-26: of 1,000 units, recent, semantic, entity and patterns have their percent
    split = overrides(budget={"recent": 20, "semantic": 40, "entity": 20, "patterns": 20})
    own = LayerShares(decisions=1, facts=3, procedures=1, episodes=1)
    assert split.select_shares(own).shares == {"decisions": 100, "facts": 500, "procedures": 200, "episodes": 200}
    assert NO_OVERRIDES.select_shares(own) == own


@pytest.mark.parametrize(
    ("profile", "weights", "problem"),
    [("custom", {"recency": 1.0}, "an expression"), ("recent", {"recency": 0.0}, "All weights are 0")],
)
def test_weights_that_cannot_hold_are_refused(profile: str, weights: dict[str, float], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        overrides(weights=weights).apply_to_profile(PROFILES[profile])


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("reach.dept=1", "reach.dept: There is no such field"),
        ("reach.depth=9", "less than or equal to 5"),
        ("reach.failures=perhaps", "valid boolean"),
        ("weights.recency", "valid number"),
        ("budget.recent=100", "budget.semantic: Field required"),
        ("depth=1", "depth: There is no such field"),
    ],
)
def test_a_wrong_assignment_on_the_command_line_is_named(assignment: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_arguments(load_operations()["context"], {"input": "Where?", "overrides": [assignment]})


def test_of_a_long_input_both_ends_are_searched_for() -> None:
    # R11
    long = f"first {'middle ' * 100_000}last"
    request = ContextBuildRequest(agent_id=ANA, input=long, tokens=100)
    shortened = request.shorten_input()
    assert len(shortened.input) <= MAX_QUERY_CHARS and set(shortened.input.split()) == {"first", "middle", "last"}
    assert (shortened.censored_text, shortened.shorten_input()) == (long, shortened)
    # a short input stays and one without spaces is cut
    short = ContextBuildRequest(agent_id=ANA, input="Where does Ana live?", tokens=100)
    assert short.shorten_input() is short and short.censored_text == short.input
    assert len(ContextBuildRequest(agent_id=ANA, input="x" * 99_999, tokens=1).shorten_input().input) <= MAX_QUERY_CHARS
