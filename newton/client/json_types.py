"""Types and paths that the operations of the client share."""

from typing import Any
from urllib.parse import quote
from uuid import UUID

IdLike = UUID | str
JsonDict = dict[str, Any]


def encode_segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")
