"""The limits of the search for a context and of its other sources. Pure."""

from collections.abc import Mapping

from newton.cognition.request import ContextBuildRequest
from newton.content.frames import Frame, get_frame
from newton.content.profiles import GatherOptions, Profile, get_profile, merge_gather_options
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


BROAD_FACTOR = 2  # of the messages that are kept if many are asked for, or only those above a minimum enter


def compute_search_limits(tokens: int, *, is_broad: bool = False) -> dict[Kind, SearchLimits]:
    """Return the search limits of each kind. More messages are kept for a search that `is_broad`.

    The number of messages depends on the token budget, because each result takes time.
    """
    wanted = max(tokens // TOKENS_PER_EXCHANGE, MIN_EXCHANGES) * (BROAD_FACTOR if is_broad else 1)
    exchanges = min(wanted, MAX_EXCHANGES)
    return {"exchange": SearchLimits(EXCHANGES_SEARCHED, exchanges), **DEFAULT_SEARCH_LIMITS}


def find_widest_reach(
    request: ContextBuildRequest, frames: Mapping[str, Frame], profiles: Mapping[str, Profile]
) -> GatherOptions:
    """Return gather options (limits of the sources) that suffice for every profile that may be selected.

    The profile is selected only after the search. Raises NotFoundError for an unknown frame or profile.
    """
    possible = [get_frame(frames, request.frame)] if request.frame else frames.values()
    names = [request.profile] if request.profile else sorted({frame.profile for frame in possible})
    named = [get_profile(profiles, name) for name in names]
    delegates = {n for p in named if p.by_frame for n in (*p.by_frame.values(), p.otherwise)}
    considered = (*named, *(profiles[name] for name in delegates))
    return merge_gather_options(request.overrides.override_reach(p.reach) for p in considered)
