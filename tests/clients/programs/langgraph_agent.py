"""LangGraph: an agent over `ChatOpenAI`, as a compiled graph."""

from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, WEATHER_TEXT, CellTask, Result, catch, serve
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph.state import CompiledStateGraph
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


def build(task: CellTask, response_format: Any = None, **options: Any) -> CompiledStateGraph:
    model = ChatOpenAI(**{"model": "newton", "base_url": f"{task.url}/v1", "api_key": task.token, **options})
    return create_agent(model, tools=[] if response_format else [weather], response_format=response_format)


def run(task: CellTask, content: Any, **options: Any) -> dict[str, Any]:
    return build(task, **options).invoke({"messages": [HumanMessage(content)]})


def ask(task: CellTask, content: Any, **options: Any) -> str:
    return run(task, content, **options)["messages"][-1].text


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    parts = build(task).stream({"messages": [HumanMessage(task.say)]}, stream_mode="messages")
    return {"chunks": [chunk.text for chunk, _ in parts if chunk.text]}


def tools(task: CellTask) -> Result:
    messages = run(task, task.say)["messages"]
    calls = [(call["name"], call["args"]) for one in messages for call in getattr(one, "tool_calls", ())]
    return {"calls": calls, "text": messages[-1].text}


def structured(task: CellTask) -> Result:
    answer = run(task, task.say, response_format=ProviderStrategy(Order))
    return {"parsed": answer["structured_response"].model_dump()}


def images(task: CellTask) -> Result:
    parts = [{"type": "text", "text": task.say}, {"type": "image_url", "image_url": {"url": task.image}}]
    return {"text": ask(task, parts)}


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
