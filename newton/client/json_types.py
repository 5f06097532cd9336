"""Type aliases and a path function shared by the modules of the client."""

from typing import Any
from urllib.parse import quote
from uuid import UUID

IdLike = UUID | str
JsonDict = dict[str, Any]


def encode_segment(name: str) -> str:
    """Percent-encode a name as one segment of a URL path."""
    return quote(name, safe="")
