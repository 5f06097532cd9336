"""Lists of the models that servers offer, cached for a minute."""

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple, cast

import openai

from newton.errors import ProviderError
from newton.providers.model_endpoint import FAILURES, build_request_headers
from newton.providers.upstreams import DEFAULT_MODELS, ModelUpstream, format_model_names

LIST_SECONDS = 5.0
CACHE_SECONDS = 60.0
EMBEDDING_MARK = "embed"  # in the names of models that cannot chat
LIST_QUERY = {"limit": 1_000}  # of a server that lists in pages
NAME_PREFIX = re.compile(r"^models/(?=gemini-)")  # of the names that Gemini lists

Fields = Mapping[str, object]


class _Listing(NamedTuple):
    models: Mapping[str, Fields]
    expires_at: float


_listings: dict[ModelUpstream, _Listing] = {}


async def list_models(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> tuple[str, ...]:
    """Return the names of the chat models of a server. Raises ProviderError if the server cannot be asked."""
    return tuple(await describe_models(upstream, client))


async def describe_models(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> Mapping[str, Fields]:
    """Return what a server reports on its chat models, by name. Raises ProviderError if it cannot be asked."""
    now = asyncio.get_running_loop().time()
    cached = _listings.get(upstream)
    if cached is None or cached.expires_at < now:
        cached = _listings[upstream] = _Listing(await _fetch_models(upstream, client), now + CACHE_SECONDS)
    return cached.models


async def _fetch_models(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> Mapping[str, Fields]:
    query, headers = LIST_QUERY if upstream.provider == "anthropic" else None, build_request_headers(upstream)
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = [one.to_dict() async for one in client.models.list(extra_query=query, extra_headers=headers)]
            found = {NAME_PREFIX.sub("", str(one["id"])): cast("Fields", one) for one in listed}
    except (openai.APIConnectionError, TimeoutError):
        message = f"{upstream.address} cannot be reached."
        raise ProviderError(message, hint=f"Check {upstream.address_setting}, and that the server runs.") from None
    except (*FAILURES, TypeError, AttributeError, KeyError):
        message = f"{upstream.address} does not list its models."
        hint = f"Check {upstream.address_setting} and {upstream.key_setting}, and set {upstream.model_setting}."
        raise ProviderError(message, hint=hint) from None
    return {name: one for name, one in found.items() if _can_chat(name, one)}


def _can_chat(name: str, fields: Fields) -> bool:
    return EMBEDDING_MARK not in name.lower() and fields.get("lifecycle") != "retired"


async def find_only_model(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> str:
    """Return the model to use when none is configured: the default of the provider, or the only one of a server.

    Raises ProviderError if the server offers none or several.
    """
    if (known := known_only_model(upstream)) is not None:
        return known
    names, address = await list_models(upstream, client), upstream.address
    if len(names) == 1:
        return names[0]
    if not names:
        raise ProviderError(
            f"{address} offers no chat model.",
            hint="Load a chat model on that server, such as with `ollama pull NAME`.",
        )
    setting = upstream.model_setting
    what = f"{setting} is not set, and {address} offers several models: {format_model_names(names)}."
    raise ProviderError(what, hint=f"Set {setting} to one of them.")


def known_only_model(upstream: ModelUpstream) -> str | None:
    """Return the result of `find_only_model` if it is known without a request, else None."""
    if upstream.is_provider_itself:
        return DEFAULT_MODELS[upstream.provider]
    listing = _listings.get(upstream)
    return next(iter(listing.models)) if listing and len(listing.models) == 1 else None
