"""Newton gives an agent a mind it can keep: memory, context and decisions on PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from newton.client import Client

__all__ = ["Client", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # an HTTP client takes a tenth of a second to load, and most commands speak to nobody
    if name == "Client":
        return import_module("newton.client").Client
    raise AttributeError(name)
