"""Typed clients of the HTTP API: `Client` for asyncio and `SyncClient` without it.

This package imports no other module of Newton, because it is also built as the distribution newton-client.
"""

from .client import Client
from .context import ContextItem, ContextResponse, DroppedCandidate, FrameSelection, LayerTokens
from .errors import ApiError
from .response_types import (
    AppendMessagesDict,
    EventDict,
    IdLike,
    JsonDict,
    MessageDict,
    Outcome,
    RefusedItemDict,
    StreamedEvent,
    TokenInfoDict,
    TurnEvent,
)
from .sync_client import SyncClient

__all__ = [
    "ApiError",
    "AppendMessagesDict",
    "Client",
    "ContextItem",
    "ContextResponse",
    "DroppedCandidate",
    "EventDict",
    "FrameSelection",
    "IdLike",
    "JsonDict",
    "LayerTokens",
    "MessageDict",
    "Outcome",
    "RefusedItemDict",
    "StreamedEvent",
    "SyncClient",
    "TokenInfoDict",
    "TurnEvent",
]
__version__ = "0.1.0"
