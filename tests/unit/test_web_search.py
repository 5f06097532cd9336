"""The web search client against a real HTTP server on loopback."""

import json

import pytest

from newton.errors import ProviderError
from newton.providers.web_search import MAX_BYTES, MAX_SEARCHES_PER_WINDOW, WebSearch, parse_results
from tests.endpoint import Respond, Wire, endpoint, fails, hangs, talks_garbage

RESULT = {"title": "Ferries", "content": "The night ferry sails again. " * 30, "url": "https://x.org/a", "extra": 1}
HIDDEN = {"title": "No", "content": "words", "url": "file:///etc/passwd"}


class Ticks:
    """A clock of milliseconds that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def finds(*results: object) -> Respond:
    async def respond(wire: Wire) -> None:
        await wire.send(200, {"query": wire.path, "results": list(results)})

    return respond


async def failure(url: str, seconds: float = 5.0) -> str:
    with pytest.raises(ProviderError) as raised:
        await WebSearch(url, seconds=seconds).search("ferries")
    return raised.value.what


async def test_a_search_gives_a_few_short_excerpts_with_their_addresses() -> None:
    # S004-11
    paths: list[str] = []

    async def respond(wire: Wire) -> None:
        paths.append(wire.path)
        await wire.send(200, {"results": [HIDDEN, RESULT, RESULT, RESULT, RESULT]})

    async with endpoint(respond) as there:
        found = await WebSearch(there.url, seconds=5).search("  night\n ferries & trains ")
    assert paths == ["/v1/search?q=night+ferries+%26+trains&format=json"]
    assert [one.url for one in found] == ["https://x.org/a"] * 3
    assert all(len(one.text) <= 400 and one.text.endswith(".") for one in found)
    assert parse_results(json.dumps({"results": [{"url": "https://x.org", "content": None}, {}]}).encode()) == []


async def test_the_same_query_is_asked_once_in_two_minutes_and_no_more_than_13_in_one() -> None:
    # S004-11
    ticks = Ticks()
    async with endpoint(finds(RESULT)) as there:
        search = WebSearch(there.url, seconds=5, ticks=ticks)
        for n in range(MAX_SEARCHES_PER_WINDOW):
            assert await search.search(f"ferry {n}")
        assert await search.search("ferry 0"), "known, so it is not asked"
        assert len(there.asked) == MAX_SEARCHES_PER_WINDOW
        with pytest.raises(ProviderError, match="13 web searches per minute"):
            await search.search("one more")
        ticks.now = 60_000.0
        await search.search("one more")
        ticks.now = 120_000.0
        await search.search("ferry 0")
        assert len(there.asked) == MAX_SEARCHES_PER_WINDOW + 2


@pytest.mark.parametrize(
    ("respond", "what"),
    [
        (fails(500), "status 500"),
        (fails(302, Location="http://127.0.0.1:1/"), "status 302"),
        (talks_garbage, "invalid response"),
    ],
)
async def test_what_is_no_answer_is_named_and_no_redirect_is_followed(respond: Respond, what: str) -> None:
    async with endpoint(respond) as there:
        assert what in await failure(there.url)


async def test_a_search_that_hangs_or_says_too_much_or_is_not_there_fails_in_time() -> None:
    async def floods(wire: Wire) -> None:
        await wire.send(200, "x" * (MAX_BYTES + 1))

    async with endpoint(hangs) as there:
        assert "did not respond" in await failure(there.url, seconds=0.1)
    async with endpoint(floods) as there:
        assert "more than" in await failure(there.url)
    assert "did not respond" in await failure("http://127.0.0.1:1")


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'{"results": 3}', b"[" * 100_000, b'{"results": ["x"]}'])
def test_an_answer_of_another_form_is_refused(body: bytes) -> None:
    with pytest.raises(ProviderError, match="invalid response"):
        parse_results(body)
