"""OpenAI's package for Python, chat completions."""

import json
from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_SCHEMA, WEATHER_TEXT, CellTask, Result, catch, serve
from openai import OpenAI, OpenAIError
from pydantic import BaseModel

WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": WEATHER_SCHEMA}}


class Order(BaseModel):
    drink: str
    cups: int


def connect(task: CellTask, **options: Any) -> OpenAI:
    return OpenAI(**{"base_url": f"{task.url}/v1", "api_key": task.token, **options})


def ask(client: OpenAI, content: Any, **options: Any) -> str:
    messages = [{"role": "user", "content": content}]
    reply = client.chat.completions.create(**{"model": "newton", "messages": messages, **options})
    return reply.choices[0].message.content


def chat(task: CellTask) -> Result:
    return {"text": ask(connect(task), task.say)}


def stream(task: CellTask) -> Result:
    messages: Any = [{"role": "user", "content": task.say}]
    chunks = connect(task).chat.completions.create(model="newton", messages=messages, stream=True)
    return {"chunks": [text for one in chunks if one.choices and (text := one.choices[0].delta.content)]}


def tools(task: CellTask) -> Result:
    client = connect(task)
    messages: list[Any] = [{"role": "user", "content": task.say}]
    first = client.chat.completions.create(model="newton", messages=messages, tools=[WEATHER])
    message = first.choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    messages.append(message)
    messages += [{"role": "tool", "tool_call_id": one.id, "content": WEATHER_TEXT} for one in message.tool_calls]
    second = client.chat.completions.create(model="newton", messages=messages, tools=[WEATHER])
    return {"calls": calls, "text": second.choices[0].message.content}


def structured(task: CellTask) -> Result:
    messages: Any = [{"role": "user", "content": task.say}]
    reply = connect(task).chat.completions.parse(model="newton", messages=messages, response_format=Order)
    return {"parsed": reply.choices[0].message.parsed.model_dump()}


def images(task: CellTask) -> Result:
    parts = [{"type": "text", "text": task.say}, {"type": "image_url", "image_url": {"url": task.image}}]
    return {"text": ask(connect(task), parts)}


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(connect(task), text) for text in (task.fact, task.question)]}


def errors(task: CellTask) -> Result:
    client = connect(task, max_retries=0)
    wrong = client.with_options(api_key="nwt_wrong")
    return {
        "token": catch(OpenAIError, lambda: ask(wrong, task.say)),
        "model": catch(OpenAIError, lambda: ask(client, task.say, model=UNKNOWN_MODEL)),
        "down": catch(OpenAIError, lambda: ask(client, task.say, model=DOWN_MODEL)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(connect(task), task.say, store=False)}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
