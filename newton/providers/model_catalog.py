"""The models that an OpenAI-compatible server offers."""

import asyncio
from typing import NamedTuple

import openai

from newton.errors import ProviderError
from newton.providers.model_endpoint import DEFAULT_BASE_URL, FAILURES

DEFAULT_MODEL = "gpt-4o-mini"  # of OpenAI itself
LIST_SECONDS = 5.0
CACHE_SECONDS = 60.0
MAX_LISTED = 10  # names in an error
EMBEDDING_MARK = "embed"  # in the names of models that cannot chat


class _Listing(NamedTuple):
    names: tuple[str, ...]
    expires_at: float


_listings: dict[str, _Listing] = {}


def address_of(client: openai.AsyncOpenAI) -> str:
    return str(client.base_url).rstrip("/")


async def list_models(client: openai.AsyncOpenAI) -> tuple[str, ...]:
    """Return the names of the chat models of a server, at most a minute old. Raises ProviderError."""
    address, now = address_of(client), asyncio.get_running_loop().time()
    cached = _listings.get(address)
    if cached is None or cached.expires_at < now:
        cached = _listings[address] = _Listing(await _fetch_names(client), now + CACHE_SECONDS)
    return cached.names


async def _fetch_names(client: openai.AsyncOpenAI) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = [str(one.id) async for one in client.models.list()]
    except (openai.APIConnectionError, TimeoutError):
        message = f"{address_of(client)} cannot be reached."
        raise ProviderError(message, hint="Check OPENAI_BASE_URL and that it runs.") from None
    except (*FAILURES, TypeError, AttributeError):
        message = f"{address_of(client)} does not list its models."
        raise ProviderError(message, hint="Check OPENAI_BASE_URL, and set OPENAI_MODEL.") from None
    return tuple(name for name in listed if EMBEDDING_MARK not in name.lower())


async def find_only_model(client: openai.AsyncOpenAI) -> str:
    """Return the name of the model to use when none is configured: OpenAI's default, or the only one of a server.

    Raises ProviderError when the server offers another number of models than one.
    """
    if (known := known_only_model(client)) is not None:
        return known
    names, address = await list_models(client), address_of(client)
    if len(names) == 1:
        return names[0]
    if not names:
        raise ProviderError(f"{address} offers no chat model.", hint="Load a model there, such as `ollama pull NAME`.")
    what = f"OPENAI_MODEL is not set, and {address} offers several models: {_format_names(names)}."
    raise ProviderError(what, hint="Set OPENAI_MODEL to one of them.")


def known_only_model(client: openai.AsyncOpenAI) -> str | None:
    """Return what `find_only_model` would, if it is known without a request."""
    address = address_of(client)
    if address == DEFAULT_BASE_URL:
        return DEFAULT_MODEL
    listing = _listings.get(address)
    return listing.names[0] if listing and len(listing.names) == 1 else None


def _format_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")
