"""The OpenAI Agents SDK with its default, the Responses API."""

import asyncio
import json
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.items import ToolCallItem
from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_TEXT, CellTask, Result, catch, serve
from openai import AsyncOpenAI, OpenAIError
from pydantic import BaseModel

set_tracing_disabled(True)


class Order(BaseModel):
    drink: str
    cups: int


@function_tool
def weather(place: str) -> str:
    """Return the weather of a place."""
    return WEATHER_TEXT if place == "Porto" else "unknown"


def build(task: CellTask, *, name: str = "newton", token: str = "", **options: Any) -> Agent[Any]:
    client = AsyncOpenAI(base_url=f"{task.url}/v1", api_key=token or task.token, max_retries=0)
    return Agent(name="Sam", model=OpenAIResponsesModel(name, client), **options)


def ask(task: CellTask, given: Any, **options: Any) -> Any:
    return asyncio.run(Runner.run(build(task, **options), given)).final_output


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


async def read_stream(task: CellTask) -> list[str]:
    events = Runner.run_streamed(build(task), task.say).stream_events()
    raw = [event.data async for event in events if event.type == "raw_response_event"]
    return [one.delta for one in raw if one.type == "response.output_text.delta"]


def stream(task: CellTask) -> Result:
    return {"chunks": asyncio.run(read_stream(task))}


def tools(task: CellTask) -> Result:
    run = asyncio.run(Runner.run(build(task, tools=[weather]), task.say))
    made = [item.raw_item for item in run.new_items if isinstance(item, ToolCallItem)]
    return {"calls": [(one.name, json.loads(one.arguments)) for one in made], "text": run.final_output}


def structured(task: CellTask) -> Result:
    return {"parsed": ask(task, task.say, output_type=Order).model_dump()}


def images(task: CellTask) -> Result:
    parts = [{"type": "input_text", "text": task.say}, {"type": "input_image", "image_url": task.image}]
    return {"text": ask(task, [{"role": "user", "content": parts}])}


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def errors(task: CellTask) -> Result:
    return {
        "token": catch(OpenAIError, lambda: ask(task, task.say, token="nwt_wrong")),
        "model": catch(OpenAIError, lambda: ask(task, task.say, name=UNKNOWN_MODEL)),
        "down": catch(OpenAIError, lambda: ask(task, task.say, name=DOWN_MODEL)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, model_settings=ModelSettings(store=False))}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
