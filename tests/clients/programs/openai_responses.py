"""OpenAI's package for Python, responses."""

import json
from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_SCHEMA, WEATHER_TEXT, CellTask, Result, catch, serve
from openai import OpenAI, OpenAIError
from pydantic import BaseModel

WEATHER: Any = {"type": "function", "name": "weather", "parameters": WEATHER_SCHEMA, "strict": True}


class Order(BaseModel):
    drink: str
    cups: int


def connect(task: CellTask, **options: Any) -> OpenAI:
    return OpenAI(**{"base_url": f"{task.url}/v1", "api_key": task.token, **options})


def ask(client: OpenAI, given: Any, **options: Any) -> str:
    return client.responses.create(**{"model": "newton", "input": given, **options}).output_text


def chat(task: CellTask) -> Result:
    return {"text": ask(connect(task), task.say)}


def stream(task: CellTask) -> Result:
    with connect(task).responses.stream(model="newton", input=task.say) as events:
        return {"chunks": [event.delta for event in events if event.type == "response.output_text.delta"]}


def tools(task: CellTask) -> Result:
    client = connect(task)
    first = client.responses.create(model="newton", input=task.say, tools=[WEATHER])
    made = [item for item in first.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": one.call_id, "output": WEATHER_TEXT} for one in made]
    text = ask(client, results, previous_response_id=first.id, tools=[WEATHER])
    return {"calls": [(one.name, json.loads(one.arguments)) for one in made], "text": text}


def structured(task: CellTask) -> Result:
    reply = connect(task).responses.parse(model="newton", input=task.say, text_format=Order)
    return {"parsed": reply.output_parsed.model_dump()}


def images(task: CellTask) -> Result:
    parts = [{"type": "input_text", "text": task.say}, {"type": "input_image", "image_url": task.image}]
    return {"text": ask(connect(task), [{"role": "user", "content": parts}])}


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
