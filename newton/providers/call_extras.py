"""Data that a server attaches to a tool call and requires back with the call, such as a signature of its reasoning.

Only that server understands the data. This process keeps them in memory for the next requests of a conversation.
"""

from collections import OrderedDict
from collections.abc import Mapping

from newton.providers.structured_output import EndpointKey

MAX_KEPT = 1_024  # calls; the oldest are dropped

CallExtras = Mapping[str, object]

_kept: OrderedDict[tuple[EndpointKey, str], CallExtras] = OrderedDict()


def keep_call_extras(endpoint: EndpointKey, extras: Mapping[str, CallExtras]) -> None:
    """Keep the data that a server attached to the calls of a reply. `extras` maps ids of calls to the data."""
    for call_id, fields in extras.items():
        _kept[endpoint, call_id] = fields
        _kept.move_to_end((endpoint, call_id))
    while len(_kept) > MAX_KEPT:
        _kept.popitem(last=False)


def find_call_extras(endpoint: EndpointKey, call_id: str) -> CallExtras:
    """Return the data that the server attached to a call; empty if there was none or it was dropped."""
    return _kept.get((endpoint, call_id), {})
