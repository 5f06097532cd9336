"""Data that a server attaches to a tool call and that must get back with it, such as a signature of its reasoning.

It is opaque, worthless to other models and not stored: this process keeps it for the rounds of a conversation.
"""

from collections import OrderedDict
from collections.abc import Mapping

from newton.providers.structured_output import EndpointKey

MAX_KEPT = 1_024  # calls; the oldest are dropped

CallExtras = Mapping[str, object]

_kept: OrderedDict[tuple[EndpointKey, str], CallExtras] = OrderedDict()


def keep_call_extras(endpoint: EndpointKey, extras: Mapping[str, CallExtras]) -> None:
    """Keep what came with the calls of a reply, by the id of the call."""
    for call_id, fields in extras.items():
        _kept[endpoint, call_id] = fields
        _kept.move_to_end((endpoint, call_id))
    while len(_kept) > MAX_KEPT:
        _kept.popitem(last=False)


def find_call_extras(endpoint: EndpointKey, call_id: str) -> CallExtras:
    """Return what came with a call of this endpoint; empty if nothing did or it is forgotten."""
    return _kept.get((endpoint, call_id), {})
