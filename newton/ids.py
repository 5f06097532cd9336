"""Identifiers: UUIDv7 for new rows, and UUIDv5 computed from the names of agents and embedding models."""

from uuid import UUID, uuid5

from uuid_utils.compat import uuid7

_AGENT_NAMESPACE = UUID("6f2f1c9e-5d0b-5c55-9a53-2d0a6c1f7e11")
_MODEL_NAMESPACE = UUID("0b7a6a34-93d5-5d6c-8f0a-7c5b0b1c2f42")


def new_id() -> UUID:
    """Return a new UUIDv7. Ids sort by time of creation."""
    return uuid7()


def derive_agent_id(name: str) -> UUID:
    """Compute the UUID of an agent from its name.

    It is the same on every machine, so that finding an agent needs no query that could read rows of other agents.
    """
    return uuid5(_AGENT_NAMESPACE, name)


def derive_model_id(identity: str) -> UUID:
    """Compute the UUID of an embedding model from its identity string; it is the same in every database."""
    return uuid5(_MODEL_NAMESPACE, identity)
