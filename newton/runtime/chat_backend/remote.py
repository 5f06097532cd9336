"""The chat backend for an agent in a daemon, which is called over HTTP."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter

from newton.agent.loop.turn_status import ProgressCallback, ProgressEvent, TasksChanged, TurnStatus
from newton.agent.maintenance.service import BATCH_SIZE
from newton.client import Client, TokenInfoDict, TurnEvent
from newton.client.http_messages import expect_newton_response
from newton.dialogue.compaction.progress_events import EVENT_TYPES, CompactionEvent, ignore_progress
from newton.memory.hygiene import clean_text
from newton.operations.conversations.task_records import TaskList, to_tree
from newton.operations.declaration import Operation
from newton.providers.context_windows import ContextWindow
from newton.runtime.chat_backend.daemon_errors import convert_api_errors
from newton.runtime.chat_backend.protocol import DebugLines, ImageInput, PrivateMessage
from newton.runtime.chat_backend.view_models import (
    TurnView,
)
from newton.runtime.model_directory import ensure_offered

T = TypeVar("T")

TASKS = TypeAdapter(TaskList)
STATUS = TypeAdapter(TurnStatus)
WINDOW = TypeAdapter(ContextWindow)


@dataclass(slots=True, kw_only=True)
class RemoteAgent:
    """A chat backend that calls a daemon. Its methods raise ApiError for errors that the daemon reports.

    `on_event` receives progress events. `selected_model` replaces the agent's model; None selects no other.
    """

    client: Client
    token_info: TokenInfoDict
    on_event: ProgressCallback = ignore_progress
    selected_model: str | None = None

    @property
    def agent(self) -> str:
        return self.token_info["agent"]

    @property
    def model(self) -> str | None:
        return self.selected_model or self.token_info["model"]

    async def find_window(self) -> ContextWindow | None:
        found = await self.client.get("/v1/models")
        with expect_newton_response():
            matching = (one for one in found["data"] if one["id"] == (self.selected_model or "newton"))
            listed = next(matching, dict[str, Any]())
            fields = listed.get("context_window"), listed.get("context_window_source")
            return WINDOW.validate_python(fields) if fields[0] else None

    async def select_model(self, name: str) -> str:
        ensure_offered(name, await self.list_models())
        self.selected_model = name
        return name

    async def list_models(self) -> Sequence[str]:
        found = await self.client.get("/v1/models")
        with expect_newton_response():
            return [one["id"] for one in found["data"] if one["owned_by"] != "newton"]

    async def run_turn(
        self,
        session: str,
        input: str | ImageInput,
        *,
        frame: str | None = None,
        strategy: str | None = None,
        include_context: bool = False,
        private: Sequence[PrivateMessage] | None = None,
    ) -> AsyncGenerator[str | DebugLines | TurnView]:
        input, images = input if isinstance(input, ImageInput) else (input, ())
        text = clean_text(input, what="message")
        messages = None if private is None else [one._asdict() for one in private]
        options = {"frame": frame, "strategy": strategy, "model": self.selected_model, "private": messages}
        options["images"] = [one._asdict() for one in images] or None
        fields: dict[str, Any] = {
            "include_context": include_context,
            **{name: one for name, one in options.items() if one is not None},
        }
        async with aclosing(self.client.run_turn(session, text, **fields)) as events:  # closing it stops the turn
            async for event in events:
                piece = _parse_event(event)
                if isinstance(piece, str | DebugLines | TurnView):
                    yield piece
                elif piece is not None:
                    self.on_event(piece)

    async def process_pending(self, limit: int | None = BATCH_SIZE) -> None:
        """Do nothing, because the background jobs of the daemon process new memories."""

    async def learn(self) -> None:
        """Do nothing, because a background job of the daemon learns from sessions."""

    async def attach_file(self, session: str, name: str, raw: bytes, *, ref: str) -> None:
        stored = await self.client.upload_document(name, raw, ref=ref, source="own")
        document = await self.client.document(stored["document_id"])
        with expect_newton_response():
            text = "\n".join([document["title"], *(one["text"] for one in document["passages"])])
        await self.client.add_artifact(session, name, content=text)

    async def run_operation(self, operation: Operation, arguments: Mapping[str, object]) -> object:
        in_path = {name: operation.parameters[name].default for name in operation.path_fields}
        with convert_api_errors():
            result = await self.client.run_operation(operation.name, {**in_path, **arguments})
            return _parse(operation.result_type, result)


def _parse_event(event: TurnEvent) -> str | DebugLines | TurnView | ProgressEvent | None:
    """Return a piece of the reply, debug lines, the result, or the progress of the turn; None for an unknown type."""
    with expect_newton_response():
        match event.type:
            case "delta":
                return str(event.data["text"])
            case "debug":
                return DebugLines([str(line) for line in event.data["lines"]])
            case "result":
                return TurnView.model_validate(event.data)
            case "status" | "tasks":
                is_status = event.type == "status"
                return STATUS.validate_python(event.data) if is_status else _parse_tasks(event.data)
            case "compaction" if event_type := EVENT_TYPES.get(event.data.pop("event", "")):
                return TypeAdapter[CompactionEvent](event_type).validate_python(event.data)
            case _:
                return None


def _parse_tasks(data: object) -> TasksChanged:
    return TasksChanged(to_tree(TASKS.validate_python(data).items))


def _parse(adapter: TypeAdapter[T], data: object) -> T:
    with expect_newton_response():
        return adapter.validate_json(json.dumps(data))  # models of files are strict, but read lists of JSON as tuples
