"""LiteLLM: `completion` with the provider for OpenAI-compatible servers."""

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # the list of prices is not fetched

import litellm
from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_SCHEMA, WEATHER_TEXT, CellTask, Result, catch, serve
from pydantic import BaseModel

WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER_SCHEMA}}


class Order(BaseModel):
    drink: str
    cups: int


def complete(task: CellTask, *messages: Any, model: str = "newton", **options: Any) -> Any:
    options = {"api_base": f"{task.url}/v1", "api_key": task.token, **options}
    return litellm.completion(model=f"openai/{model}", messages=list(messages), **options)


def ask(task: CellTask, content: Any, **options: Any) -> str:
    return complete(task, {"role": "user", "content": content}, **options).choices[0].message.content


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    chunks = complete(task, {"role": "user", "content": task.say}, stream=True)
    return {"chunks": [text for one in chunks if one.choices and (text := one.choices[0].delta.content)]}


def tools(task: CellTask) -> Result:
    user = {"role": "user", "content": task.say}
    message = complete(task, user, tools=[WEATHER]).choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    results = [{"role": "tool", "tool_call_id": one.id, "content": WEATHER_TEXT} for one in message.tool_calls]
    second = complete(task, user, message, *results, tools=[WEATHER])
    return {"calls": calls, "text": second.choices[0].message.content}


def structured(task: CellTask) -> Result:
    return {"parsed": Order.model_validate_json(ask(task, task.say, response_format=Order)).model_dump()}


def images(task: CellTask) -> Result:
    return {
        "text": ask(task, [{"type": "text", "text": task.say}, {"type": "image_url", "image_url": {"url": task.image}}])
    }


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def errors(task: CellTask) -> Result:
    once: Any = {"num_retries": 0, "max_retries": 0}
    failure = litellm.exceptions.openai.OpenAIError
    return {
        "token": catch(failure, lambda: ask(task, task.say, api_key="nwt_wrong", **once)),
        "model": catch(failure, lambda: ask(task, task.say, model=UNKNOWN_MODEL, **once)),
        "down": catch(failure, lambda: ask(task, task.say, model=DOWN_MODEL, **once)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, store=False)}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
