"""Quarantine: memories from tools and the web are hidden from recall until they are confirmed."""

from newton.memory.memory import Trust

# Memories of these tiers are quarantined.
UNTRUSTED_TIERS: frozenset[Trust] = frozenset({"tool", "web"})

MIN_INDEPENDENT_ORIGINS = 2  # other outside origins that release a quarantined fact


def is_quarantined(trust: Trust, *, needs_approval: bool) -> bool:
    """Return whether a new memory of this trust is quarantined. Pure."""
    return needs_approval or trust in UNTRUSTED_TIERS


def is_confirmed(*, by_person: bool, other_origins: int) -> bool:
    """Return whether a quarantined fact is confirmed by a person, or by enough independent origins. Pure.

    `other_origins` counts the tools and web sources that state the fact besides the first one.
    """
    return by_person or other_origins >= MIN_INDEPENDENT_ORIGINS
