"""A model of the OpenAI Agents SDK that repeats the last message."""

from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText


class EchoModel(Model):
    """Keeps the input of each call."""

    def __init__(self) -> None:
        self.inputs = list[list[Any]]()

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        given = list(options.get("input", args[1] if len(args) > 1 else []))
        self.inputs.append(given)
        text = ResponseOutputText(type="output_text", text=f"You said: {given[-1]['content']}", annotations=[])
        reply = ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[reply], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError
