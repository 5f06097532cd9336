"""pydantic-ai: an agent whose model is `OpenAIChatModel`."""

import asyncio
from base64 import b64decode
from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_TEXT, CellTask, Result, catch, serve
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelAPIError, NativeOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers.openai import OpenAIProvider


class Order(BaseModel):
    """An order of drinks."""

    drink: str
    cups: int


def weather(place: str) -> str:
    """Return the weather of a place."""
    return WEATHER_TEXT if place == "Porto" else "unknown"


def build(task: CellTask, *, name: str = "newton", token: str = "", **options: Any) -> Agent[None, Any]:
    client = AsyncOpenAI(base_url=f"{task.url}/v1", api_key=token or task.token, max_retries=0)
    return Agent(OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), **options)


def ask(task: CellTask, content: Any, **options: Any) -> Any:
    return build(task, **options).run_sync(content).output


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


async def read_stream(task: CellTask) -> list[str]:
    async with build(task).run_stream(task.say) as reply:
        return [text async for text in reply.stream_text(delta=True, debounce_by=None)]


def stream(task: CellTask) -> Result:
    return {"chunks": asyncio.run(read_stream(task))}


def tools(task: CellTask) -> Result:
    run = build(task, tools=[weather]).run_sync(task.say)
    replies = [one for one in run.all_messages() if isinstance(one, ModelResponse)]
    made = [part for one in replies for part in one.parts if isinstance(part, ToolCallPart)]
    return {"calls": [(one.tool_name, one.args_as_dict()) for one in made], "text": run.output}


def structured(task: CellTask) -> Result:
    return {"parsed": ask(task, task.say, output_type=NativeOutput(Order)).model_dump()}


def images(task: CellTask) -> Result:
    data = b64decode(task.image.partition(",")[2])
    return {"text": ask(task, [task.say, BinaryContent(data, media_type="image/png")])}


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def errors(task: CellTask) -> Result:
    return {
        "token": catch(ModelAPIError, lambda: ask(task, task.say, token="nwt_wrong")),
        "model": catch(ModelAPIError, lambda: ask(task, task.say, name=UNKNOWN_MODEL)),
        "down": catch(ModelAPIError, lambda: ask(task, task.say, name=DOWN_MODEL)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, model_settings=OpenAIChatModelSettings(openai_store=False))}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
