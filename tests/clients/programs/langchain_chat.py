"""LangChain: `ChatOpenAI` of langchain-openai."""

from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_TEXT, CellTask, Result, catch, serve
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import BaseModel


class Order(BaseModel):
    """An order of drinks."""

    drink: str
    cups: int


@tool
def weather(place: str) -> str:
    """Return the weather of a place."""
    return WEATHER_TEXT if place == "Porto" else "unknown"


def connect(task: CellTask, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "newton", "base_url": f"{task.url}/v1", "api_key": task.token, **options})


def ask(task: CellTask, content: Any, **options: Any) -> str:
    return connect(task, **options).invoke([HumanMessage(content)]).text


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    return {"chunks": [chunk.text for chunk in connect(task).stream(task.say) if chunk.text]}


def tools(task: CellTask) -> Result:
    model = connect(task).bind_tools([weather])
    messages: list[AnyMessage] = [HumanMessage(task.say)]
    first = model.invoke(messages)
    messages += [first, *(weather.invoke(call) for call in first.tool_calls)]
    return {"calls": [(one["name"], one["args"]) for one in first.tool_calls], "text": model.invoke(messages).text}


def structured(task: CellTask) -> Result:
    return {"parsed": connect(task).with_structured_output(Order).invoke(task.say).model_dump()}


def images(task: CellTask) -> Result:
    data = task.image.partition(",")[2]
    return {
        "text": ask(
            task, [{"type": "text", "text": task.say}, {"type": "image", "base64": data, "mime_type": "image/png"}]
        )
    }


def remembers(task: CellTask) -> Result:
    return {"texts": [ask(task, text) for text in (task.fact, task.question)]}


def errors(task: CellTask) -> Result:
    return {
        "token": catch(OpenAIError, lambda: ask(task, task.say, api_key="nwt_wrong", max_retries=0)),
        "model": catch(OpenAIError, lambda: ask(task, task.say, model=UNKNOWN_MODEL, max_retries=0)),
        "down": catch(OpenAIError, lambda: ask(task, task.say, model=DOWN_MODEL, max_retries=0)),
    }


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, store=False)}


if __name__ == "__main__":
    cells = (chat, stream, tools, structured, images, remembers, errors, private)
    serve({cell.__name__: cell for cell in cells})
