"""The adapter of newton-client for pydantic-ai, with a model that is not Newton."""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

from harness import WEATHER_TEXT, CellTask, Result, catch, serve
from newton_client import ApiError, Client
from newton_client.adapters.pydantic_ai import NewtonMemory
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

Use = Callable[[Client], Awaitable[Result]]


class Order(BaseModel):
    """An order of drinks."""

    drink: str
    cups: int


def weather(place: str) -> str:
    """Return the weather of a place."""
    return WEATHER_TEXT if place == "Porto" else "unknown"


def build(task: CellTask, client: Client, session: str, **options: Any) -> Agent[None, Any]:
    provider = OpenAIProvider(base_url=task.upstream, api_key=task.upstream_key)
    memory = NewtonMemory(client, session, max_tokens=500)
    return Agent(OpenAIChatModel("gpt-5", provider=provider), capabilities=[memory], **options)


def use(task: CellTask, action: Use, *, url: str = "", token: str = "") -> Result:
    """Run an action with a client of its own."""

    async def run() -> Result:
        async with Client(url or task.url, token=token or task.token, max_attempts=1) as client:
            return await action(client)

    return asyncio.run(run())


def ask(task: CellTask, given: Any, session: str = "monday", **options: Any) -> Use:
    async def action(client: Client) -> Result:
        run = await build(task, client, session, **options).run(given)
        replies = [one for one in run.all_messages() if isinstance(one, ModelResponse)]
        made = [part for one in replies for part in one.parts if isinstance(part, ToolCallPart)]
        return {"text": run.output, "calls": [(one.tool_name, one.args_as_dict()) for one in made]}

    return action


def chat(task: CellTask) -> Result:
    return use(task, ask(task, task.say))


def stream(task: CellTask) -> Result:
    async def action(client: Client) -> Result:
        async with build(task, client, "monday").run_stream(task.say) as reply:
            return {"chunks": [text async for text in reply.stream_text(delta=True, debounce_by=None)]}

    return use(task, action)


def tools(task: CellTask) -> Result:
    return use(task, ask(task, task.say, tools=[weather]))


def structured(task: CellTask) -> Result:
    return {"parsed": use(task, ask(task, task.say, output_type=NativeOutput(Order)))["text"].model_dump()}


def images(task: CellTask) -> Result:
    data = b64decode(task.image.partition(",")[2])
    return use(task, ask(task, [task.say, BinaryContent(data, media_type="image/png")]))


def remembers(task: CellTask) -> Result:
    told = use(task, ask(task, task.fact))["text"]
    return {"texts": [told, use(task, ask(task, task.question, "tuesday"))["text"]]}


def errors(task: CellTask) -> Result:
    action = ask(task, task.say)
    return {
        "token": catch(ApiError, lambda: use(task, action, token="nwt_wrong")),
        "daemon": catch(ApiError, lambda: use(task, action, url="http://127.0.0.1:9")),
    }


if __name__ == "__main__":
    serve({cell.__name__: cell for cell in (chat, stream, tools, structured, images, remembers, errors)})
