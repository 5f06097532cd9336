"""Asks a SearXNG-compatible search what the web says. The address is the operator's, and nothing else is fetched."""

import json
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from newton.clock import stopwatch
from newton.errors import ProviderError

MOST_BYTES = 1_000_000  # of an answer
MOST_EXCERPTS = 3
MOST_CHARACTERS = 400  # of an excerpt: the first sentences
MOST_TITLE, MOST_ADDRESS = 120, 300
MOST_QUERY = 200
OK = 200
A_MINUTE, MOST_A_MINUTE = 60_000.0, 13  # milliseconds; searches
FRESH, MOST_KNOWN = 120_000.0, 64  # so long the same query has the same answer; so many are known


class Excerpt(NamedTuple):
    """What one page says. `published` is as the search gives it, or empty."""

    title: str
    text: str
    url: str
    published: str


def _plain(given: object) -> str:
    return " ".join(given.split()) if isinstance(given, str) else ""


Plain = Annotated[str, BeforeValidator(_plain)]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Plain = ""
    content: Plain = ""
    url: Plain = ""
    publishedDate: Plain = ""  # noqa: N815 (their name)


class _Results(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    results: tuple[_Result, ...] = ()


class WebSearch:
    """One search service. At most 13 questions a minute reach it; the same one is asked once in two minutes.

    `ticks` is a clock of milliseconds that never jumps.
    """

    def __init__(self, address: str, *, seconds: float, ticks: Callable[[], float] = stopwatch) -> None:
        self._address, self._seconds, self._ticks = f"{address.rstrip('/')}/search", seconds, ticks
        # made once, for it takes a tenth of a second
        self._tls = ssl.create_default_context() if address.startswith("https:") else False
        self._asked = deque[float]()
        self._known = OrderedDict[str, tuple[float, Sequence[Excerpt]]]()

    async def find(self, query: str) -> Sequence[Excerpt]:
        """The first few pages that say something. Raises ProviderError when the search gives no answer that can be
        read, or has been asked too often."""
        query = " ".join(query.split())[:MOST_QUERY]
        now = self._ticks()
        if (known := self._known.get(query)) and now - known[0] < FRESH:
            return known[1]
        while self._asked and now - self._asked[0] >= A_MINUTE:
            self._asked.popleft()
        if len(self._asked) >= MOST_A_MINUTE:
            raise ProviderError(
                f"The web was searched {MOST_A_MINUTE} times in the last minute.", hint="Ask again in a minute."
            )
        self._asked.append(now)
        found = excerpts(await self._answer(query))
        self._known[query] = (now, found)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    async def _answer(self, query: str) -> bytes:
        # no proxy, no netrc and no redirect: the words go to the operator's address and nowhere else
        client = httpx2.AsyncClient(follow_redirects=False, timeout=self._seconds, trust_env=False, verify=self._tls)
        wanted = {"q": query, "format": "json"}
        try:
            async with client, client.stream("GET", self._address, params=wanted) as response:
                if response.status_code != OK:
                    raise _failed(f"answered with status {response.status_code}")
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise _failed(f"answered with more than {MOST_BYTES:,} bytes")
                return bytes(body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _failed(f"gave no answer ({type(error).__name__})") from None


def excerpts(body: bytes) -> Sequence[Excerpt]:
    """The first few results that have words and an address. Raises ProviderError for what is no such answer."""
    try:
        given = _Results.model_validate(json.loads(body))
    except (ValidationError, ValueError, RecursionError):
        raise _failed("answered in no form that can be read") from None
    telling = (one for one in given.results if one.content and _scheme(one.url) in ("http", "https"))
    return [
        Excerpt(one.title[:MOST_TITLE], _beginning(one.content), one.url[:MOST_ADDRESS], one.publishedDate[:32])
        for _, one in zip(range(MOST_EXCERPTS), telling, strict=False)
    ]


def _scheme(address: str) -> str:
    try:
        return urlsplit(address).scheme
    except ValueError:
        return ""


def _beginning(text: str) -> str:
    """The first sentences; of one that is too long the first words."""
    if len(text) <= MOST_CHARACTERS:
        return text
    head = text[:MOST_CHARACTERS]
    end = max(head.rfind(mark) for mark in (". ", "! ", "? "))
    return head[: end + 1] if end > 0 else head.rsplit(" ", 1)[0] + " …"


def _failed(how: str) -> ProviderError:
    return ProviderError(f"The web search {how}.", hint="Check NEWTON_SEARCH_URL: SearXNG that allows the format json.")
