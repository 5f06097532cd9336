"""Identities. Rows get UUIDv7, made here, not by the database; what has a natural name gets a UUID derived from it."""

from uuid import UUID, uuid5

from uuid_utils.compat import uuid7

_AGENT_NAMESPACE = UUID("6f2f1c9e-5d0b-5c55-9a53-2d0a6c1f7e11")
_MODEL_NAMESPACE = UUID("0b7a6a34-93d5-5d6c-8f0a-7c5b0b1c2f42")


def new_id() -> UUID:
    """A UUIDv7: unique without a sequence, and sorted by the time it was made."""
    return uuid7()


def derive_agent_id(name: str) -> UUID:
    """The same name is the same agent on every machine, so finding an agent never reads another agent's rows."""
    return uuid5(_AGENT_NAMESPACE, name)


def derive_model_id(identity: str) -> UUID:
    """The same embedding model is the same id in every database."""
    return uuid5(_MODEL_NAMESPACE, identity)
