"""The limits of the search for a context, by kind of memory. Pure."""

from collections.abc import Mapping

from newton.memory.memory import Kind
from newton.memory.search_types import SearchLimits

DEFAULT_SEARCH_LIMITS: Mapping[Kind, SearchLimits] = {
    "fact": SearchLimits(searched=30, kept=30),
    "episode": SearchLimits(searched=10, kept=10),
    "procedure": SearchLimits(searched=10, kept=10),
    "passage": SearchLimits(searched=20, kept=20),
    "item": SearchLimits(searched=20, kept=20),
    "event": SearchLimits(searched=10, kept=10),
    "decision": SearchLimits(searched=20, kept=20),
}
EXCHANGES_SEARCHED = 200  # results by vector, and as many by words; adjacent messages of the best are added
TOKENS_PER_EXCHANGE = 28  # a low estimate, so that the results more than fill the context
MIN_EXCHANGES, MAX_EXCHANGES = 40, 300


BROAD_FACTOR = 2  # of the messages that are kept for a question about many of them


def compute_search_limits(tokens: int, *, is_broad: bool = False) -> dict[Kind, SearchLimits]:
    """Return the search limits of each kind. More messages are kept for a question that `is_broad`.

    The number of messages depends on the token budget, because each result takes time.
    """
    wanted = max(tokens // TOKENS_PER_EXCHANGE, MIN_EXCHANGES) * (BROAD_FACTOR if is_broad else 1)
    exchanges = min(wanted, MAX_EXCHANGES)
    return {"exchange": SearchLimits(EXCHANGES_SEARCHED, exchanges), **DEFAULT_SEARCH_LIMITS}
