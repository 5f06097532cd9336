"""Web search with a SearXNG-compatible service. Queries are sent only to the configured address."""

import json
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, BeforeValidator, ValidationError

from newton.clock import monotonic_ms
from newton.errors import ProviderError

MAX_BYTES = 1_000_000  # of a response
MAX_RESULTS = 3
MAX_TEXT_CHARS, MAX_TITLE_CHARS, MAX_URL_CHARS, MAX_QUERY_CHARS = 400, 120, 300, 200
HTTP_OK = 200
WINDOW_MS, MAX_SEARCHES_PER_WINDOW = 60_000.0, 13  # the rate limit
CACHE_TTL_MS, MAX_CACHED = 120_000.0, 64  # the lifetime and the size of the result cache


class WebResult(NamedTuple):
    """A search result. `published` is the date as the service states it; empty if unknown."""

    title: str
    text: str
    url: str
    published: str


def _to_plain_text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


Plain = Annotated[str, BeforeValidator(_to_plain_text)]


class _RawResult(BaseModel):
    title: Plain = ""
    content: Plain = ""
    url: Plain = ""
    publishedDate: Plain = ""  # noqa: N815 (the name in the response)


class _RawResults(BaseModel):
    results: tuple[_RawResult, ...] = ()


class WebSearch:
    """Client of a SearXNG-compatible search, with a rate limit and a cache. `ticks` returns milliseconds of a clock."""

    def __init__(self, address: str, *, seconds: float, ticks: Callable[[], float] = monotonic_ms) -> None:
        self._address, self._seconds, self._ticks = f"{address.rstrip('/')}/search", seconds, ticks
        # created once, because it takes 0.1 s
        self._tls = ssl.create_default_context() if address.startswith("https:") else False
        self._request_times = deque[float]()
        self._cache = OrderedDict[str, tuple[float, Sequence[WebResult]]]()

    async def search(self, query: str) -> Sequence[WebResult]:
        """Return the first results of a query that have a text and an HTTP address.

        Raises ProviderError if the service fails, or if the rate limit is reached.
        """
        query = " ".join(query.split())[:MAX_QUERY_CHARS]
        now = self._ticks()
        if (cached := self._cache.get(query)) and now - cached[0] < CACHE_TTL_MS:
            return cached[1]
        while self._request_times and now - self._request_times[0] >= WINDOW_MS:
            self._request_times.popleft()
        if len(self._request_times) >= MAX_SEARCHES_PER_WINDOW:
            raise ProviderError(
                f"The limit of {MAX_SEARCHES_PER_WINDOW} web searches per minute is reached.",
                hint="Try again in a minute.",
            )
        self._request_times.append(now)
        results = parse_results(await self._fetch(query))
        self._cache[query] = (now, results)
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return results

    async def _fetch(self, query: str) -> bytes:
        # no proxy, netrc or redirect, so that the query goes only to the configured address
        """Return the body of the service's response to a query. Raises ProviderError if it fails or is too large."""
        client = httpx2.AsyncClient(follow_redirects=False, timeout=self._seconds, trust_env=False, verify=self._tls)
        params = {"q": query, "format": "json"}
        try:
            async with client, client.stream("GET", self._address, params=params) as response:
                if response.status_code != HTTP_OK:
                    raise _search_error(f"answered with status {response.status_code}")
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_BYTES:
                        raise _search_error(f"answered with more than {MAX_BYTES:,} bytes")
                return bytes(body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _search_error(f"did not respond ({type(error).__name__})") from None


def parse_results(body: bytes) -> Sequence[WebResult]:
    """Return the first results in a response that have a text and an HTTP address.

    Raises ProviderError if the response is invalid.
    """
    try:
        results = _RawResults.model_validate(json.loads(body)).results
    except (ValidationError, ValueError, RecursionError):
        raise _search_error("sent an invalid response") from None
    usable = [one for one in results if one.content and _url_scheme(one.url) in ("http", "https")]
    return [
        WebResult(
            one.title[:MAX_TITLE_CHARS], _first_sentences(one.content), one.url[:MAX_URL_CHARS], one.publishedDate[:32]
        )
        for one in usable[:MAX_RESULTS]
    ]


def _url_scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        return ""


def _first_sentences(text: str) -> str:
    """Return the first sentences of a text, up to MAX_TEXT_CHARS. A longer sentence is cut after a word."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    head = text[:MAX_TEXT_CHARS]
    end = max(head.rfind(mark) for mark in (". ", "! ", "? "))
    return head[: end + 1] if end > 0 else head.rsplit(" ", 1)[0] + " …"


def _search_error(detail: str) -> ProviderError:
    hint = "Check that NEWTON_SEARCH_URL is the URL of a SearXNG service with the format json enabled."
    return ProviderError(f"The web search service {detail}.", hint=hint)
