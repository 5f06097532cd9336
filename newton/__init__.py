"""Newton: memory, context and decisions for AI agents, on PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from newton.client import Client, SyncClient

__all__ = ["Client", "SyncClient", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # loading the HTTP client takes 0.1 s, and most commands do not need it
    if name in ("Client", "SyncClient"):
        return getattr(import_module("newton.client"), name)
    raise AttributeError(name)
