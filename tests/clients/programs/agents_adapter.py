"""The adapter of newton-client for the OpenAI Agents SDK, with a model that is not Newton."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.items import ToolCallItem
from harness import WEATHER_TEXT, CellTask, Result, catch, serve
from newton_client import ApiError, Client
from newton_client.adapters.openai_agents import NewtonSession
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
Use = Callable[[Client], Awaitable[Result]]


class Order(BaseModel):
    drink: str
    cups: int


@function_tool
def weather(place: str) -> str:
    """Return the weather of a place."""
    return WEATHER_TEXT if place == "Porto" else "unknown"


def build(task: CellTask, **options: Any) -> Agent[Any]:
    upstream = AsyncOpenAI(base_url=task.upstream, api_key=task.upstream_key)
    return Agent(name="Sam", model=OpenAIChatCompletionsModel("gpt-5", upstream), **options)


def use(task: CellTask, action: Use, *, url: str = "", token: str = "") -> Result:
    """Run an action with a client of its own."""

    async def run() -> Result:
        async with Client(url or task.url, token=token or task.token, max_attempts=1) as client:
            return await action(client)

    return asyncio.run(run())


def ask(task: CellTask, given: Any, *, config: RunConfig | None = None, **options: Any) -> Use:
    async def action(client: Client) -> Result:
        session = NewtonSession("monday", client)
        run = await Runner.run(build(task, **options), given, session=session, run_config=config)
        made = [item.raw_item for item in run.new_items if isinstance(item, ToolCallItem)]
        return {"text": run.final_output, "calls": [(one.name, json.loads(one.arguments)) for one in made]}

    return action


def chat(task: CellTask) -> Result:
    return use(task, ask(task, task.say))


def stream(task: CellTask) -> Result:
    async def action(client: Client) -> Result:
        run = Runner.run_streamed(build(task), task.say, session=NewtonSession("monday", client))
        raw = [event.data async for event in run.stream_events() if event.type == "raw_response_event"]
        return {"chunks": [one.delta for one in raw if one.type == "response.output_text.delta"]}

    return use(task, action)


def tools(task: CellTask) -> Result:
    return use(task, ask(task, task.say, tools=[weather]))


def structured(task: CellTask) -> Result:
    return {"parsed": use(task, ask(task, task.say, output_type=Order))["text"].model_dump()}


def images(task: CellTask) -> Result:
    parts = [{"type": "input_text", "text": task.say}, {"type": "input_image", "image_url": task.image}]
    config = RunConfig(session_input_callback=lambda old, new: [*old, *new])  # lists of items need one
    return use(task, ask(task, [{"role": "user", "content": parts}], config=config))


def remembers(task: CellTask) -> Result:
    """Tell a fact in one session; ask in another one, whose instructions are the context for the question."""

    async def action(client: Client) -> Result:
        context = await client.context(task.question, max_tokens=500)
        agent = build(task, instructions=context["text"])
        run = await Runner.run(agent, task.question, session=NewtonSession("tuesday", client))
        return {"text": run.final_output}

    return {"texts": [use(task, ask(task, task.fact))["text"], use(task, action)["text"]]}


def errors(task: CellTask) -> Result:
    action = ask(task, task.say)
    return {
        "token": catch(ApiError, lambda: use(task, action, token="nwt_wrong")),
        "daemon": catch(ApiError, lambda: use(task, action, url="http://127.0.0.1:9")),
    }


if __name__ == "__main__":
    serve({cell.__name__: cell for cell in (chat, stream, tools, structured, images, remembers, errors)})
