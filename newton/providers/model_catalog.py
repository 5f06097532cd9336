"""Queries to model servers: the models that they offer, and the context windows of these models.

vLLM, SGLang, Groq and Anthropic state the window in their list of models, llama.cpp in `/props`, LM Studio in
`/api/v0/models` and Ollama in `/api/ps` and `/api/show`.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import openai

from newton.errors import ProviderError
from newton.providers.context_windows import MIN_WINDOW
from newton.providers.model_endpoint import FAILURES, build_request_headers
from newton.providers.structured_output import EndpointKey
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
    """Return the names of the chat models of a server. Raises ProviderError if the server does not list them."""
    return tuple(await describe_models(upstream, client))


async def describe_models(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> Mapping[str, Fields]:
    """Return the fields that a server reports for each chat model, by name.

    Raises ProviderError if the server does not list its models.
    """
    now = asyncio.get_running_loop().time()
    cached = _listings.get(upstream)
    if cached is None or cached.expires_at < now:
        cached = _listings[upstream] = _Listing(await _fetch_models(upstream, client), now + CACHE_SECONDS)
    return cached.models


async def _fetch_models(upstream: ModelUpstream, client: openai.AsyncOpenAI) -> Mapping[str, Fields]:
    """Request the list of models; return the fields of those that can chat, by name.

    Raises ProviderError if this fails.
    """
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
    """Return what `find_only_model` would, if it is known without a request; else None."""
    if upstream.is_provider_itself:
        return DEFAULT_MODELS[upstream.provider]
    listing = _listings.get(upstream)
    return next(iter(listing.models)) if listing and len(listing.models) == 1 else None


PROBE_SECONDS = 2.0
WINDOW_SECONDS, RETRY_SECONDS = 600.0, 60.0  # of a found window; after a failure, or a window that may still change
OLLAMA_DEFAULT = 4_096  # the window in which Ollama loads a model if nobody sets another, on most machines
LLAMA_CPP_OWNER, LM_STUDIO_OWNER = "llamacpp", "organization_owner"  # `owned_by` in the list of models
# of a model in a list; the first one that is present applies
_WINDOW_FIELDS = ("loaded_context_length", "max_model_len", "n_ctx", "context_length", "context_window")
_LIMIT_FIELDS = ("max_context_length", "max_input_tokens", "n_ctx_train")  # what the model supports at most
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)

ProbeFields = Mapping[str, Any]


class _Answer(NamedTuple):
    tokens: int | None
    expires_at: float


_answers: dict[EndpointKey, _Answer] = {}
_questions: dict[EndpointKey, asyncio.Task[None]] = {}


def find_reported_window(key: EndpointKey) -> int | None:
    """Return the context window that the server last reported for a model; None if not asked, or none was reported."""
    answer = _answers.get(key)
    return answer.tokens if answer else None


async def ask_window(upstream: ModelUpstream, client: openai.AsyncOpenAI, key: EndpointKey) -> int | None:
    """Return the context window of a model in tokens, as its server reports it; None if it reports none.

    The answer is cached for ten minutes. Concurrent callers share one request; none waits for it if the window was
    known.
    """
    answer = _answers.get(key)
    if answer and asyncio.get_running_loop().time() < answer.expires_at:
        return answer.tokens
    if (question := _questions.get(key)) is None:
        question = _questions[key] = asyncio.create_task(_refresh_answer(upstream, client, key))
        question.add_done_callback(lambda _: _questions.pop(key))
    if answer is None or answer.tokens is None:
        await asyncio.shield(question)
    return find_reported_window(key)


async def _refresh_answer(upstream: ModelUpstream, client: openai.AsyncOpenAI, key: EndpointKey) -> None:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            tokens, lasts = await _ask(upstream, client, key.model)
    except (*FAILURES, ProviderError, TypeError, AttributeError, KeyError):
        tokens, lasts = find_reported_window(key), RETRY_SECONDS
    _answers[key] = _Answer(tokens, asyncio.get_running_loop().time() + lasts)


async def _ask(upstream: ModelUpstream, client: openai.AsyncOpenAI, model: str) -> tuple[int | None, float]:
    """Return the context window (None if not reported), and the seconds for which to cache this answer."""
    models = await describe_models(upstream, client)
    listed = cast("ProbeFields", models.get(model) or models.get(f"{model}:latest") or {})
    fields: ProbeFields = {**(listed.get("meta") or {}), **listed}
    owner = listed.get("owned_by")
    if tokens := _find_tokens(fields, _WINDOW_FIELDS):
        return tokens, WINDOW_SECONDS
    root = upstream.address.removesuffix("/v1")
    if owner == LLAMA_CPP_OWNER:
        props = await _get(client, f"{root}/props")
        return _find_tokens(props["default_generation_settings"], ("n_ctx",)), WINDOW_SECONDS
    if owner == LM_STUDIO_OWNER:
        found = (one for one in (await _get(client, f"{root}/api/v0/models"))["data"] if one["id"] == model)
        loaded = next(found, dict[str, Any]())
        return _find_tokens(loaded, (*_WINDOW_FIELDS, *_LIMIT_FIELDS)), RETRY_SECONDS  # it may be loaded anew
    if tokens := _find_tokens(fields, _LIMIT_FIELDS):
        return tokens, WINDOW_SECONDS
    return (await _ask_ollama(client, root, model), RETRY_SECONDS) if owner else (None, WINDOW_SECONDS)


async def _ask_ollama(client: openai.AsyncOpenAI, root: str, model: str) -> int | None:
    """Return the window in which a model is loaded in Ollama; if it is not, the one in which Ollama will load it.

    Ollama shortens a longer prompt without an error, so a window that is too large would lose the system message.
    """
    running = await _get(client, f"{root}/api/ps")
    for one in running["models"]:
        if model in (one["name"], one["name"].removesuffix(":latest")) and one.get("context_length"):
            return int(one["context_length"])
    shown = cast("ProbeFields", await client.post(f"{root}/api/show", body={"model": model}, cast_to=object))
    if found := _NUM_CTX.search(shown.get("parameters") or ""):
        return int(found[1])
    limits = [size for name, size in shown["model_info"].items() if name.endswith(".context_length")]
    return min([OLLAMA_DEFAULT, *limits])


async def _get(client: openai.AsyncOpenAI, url: str) -> ProbeFields:
    return cast("ProbeFields", await client.get(url, cast_to=object))


def _find_tokens(fields: ProbeFields, names: tuple[str, ...]) -> int | None:
    found = (fields.get(name) for name in names)
    return next((size for size in found if isinstance(size, int) and size >= MIN_WINDOW), None)
