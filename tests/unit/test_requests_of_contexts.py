"""A request for a context with a long input."""

from newton.cognition.request import ContextBuildRequest
from newton.memory.search_types import MAX_QUERY_CHARS
from tests.support import ANA


def test_of_a_long_input_both_ends_are_searched_for_and_the_whole_is_compared_with_censors() -> None:
    # R11
    long = f"first {'middle ' * 100_000}last"
    request = ContextBuildRequest(agent_id=ANA, input=long, tokens=100)
    shortened = request.shorten_input()
    assert len(shortened.input) <= MAX_QUERY_CHARS and set(shortened.input.split()) == {"first", "middle", "last"}
    assert (shortened.censored_text, shortened.shorten_input()) == (long, shortened)


def test_a_short_input_stays_and_one_without_spaces_is_cut() -> None:
    # R11
    short = ContextBuildRequest(agent_id=ANA, input="Where does Ana live?", tokens=100)
    assert short.shorten_input() is short and short.censored_text == short.input
    assert len(ContextBuildRequest(agent_id=ANA, input="x" * 99_999, tokens=1).shorten_input().input) <= MAX_QUERY_CHARS
