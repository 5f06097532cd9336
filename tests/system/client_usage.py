"""A program that uses both clients: a test runs it with nothing but newton-client, pyright checks it strictly."""

import asyncio
import sys

from newton_client import ApiError, Client, ContextResponse, SyncClient, TurnEvent


def use_synchronously() -> None:
    with SyncClient(timeout=60, max_attempts=2) as client:
        fact = client.remember("Ana lives in Porto.", subject="Ana", idempotency_key="first")
        again = client.remember("Ana lives in Porto.", subject="Ana", idempotency_key="first")
        assert fact["memory_id"] == again["memory_id"] and again["status"] == "new"
        context: ContextResponse = client.context("Where does Ana live?", max_tokens=300)
        assert "Porto" in context["text"] and context["tokens"] <= 300
        events: list[TurnEvent] = list(client.run_turn("sync", "Where does Ana live?"))
        assert events[-1].type == "result"
        assert len(list(client.iter_pages("/v1/sessions/sync/messages", limit=1))) >= 1
        event = next(client.events(after=0))
        assert event.event_id > 0
        try:
            client.expand("00000000-0000-7000-8000-000000000000")
            raise AssertionError("there is no such memory")
        except ApiError as error:
            assert (error.code, error.status, error.title) == ("not_found", 404, "Not found")
            assert error.detail and error.hint


async def use_asynchronously() -> None:
    async with Client() as client:
        found = await client.recall("Porto", kinds=["fact"])
        assert [one["text"] for one in found["items"]] == ["Ana lives in Porto."]
        events = [event async for event in client.run_turn("async", "Where does Ana live?")]
        assert events[-1].type == "result"
        assert [one["session"] async for one in client.iter_pages("/v1/sessions", limit=1)] == ["async", "sync"]
        async for event in client.events(after=0):
            assert event.event_id > 0
            break
        try:
            await Client("http://127.0.0.1:1", token="x", max_attempts=1).calibration()
            raise AssertionError("nobody is there")
        except ApiError as error:
            assert (error.code, error.status) == ("daemon_unreachable", None)


def main() -> None:
    use_synchronously()
    asyncio.run(use_asynchronously())
    loaded = {name.partition(".")[0] for name in sys.modules}
    sys.stdout.write(" ".join(sorted(loaded & {"newton", "asyncpg", "fastapi", "pydantic", "agents", "pydantic_ai"})))


if __name__ == "__main__":
    main()
