"""The chat backend for an agent in this process."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from newton.agent.actions.external_tools import ApprovalCallback
from newton.agent.loop.history_match import IncomingMessage, to_private_view
from newton.agent.loop.prompt import MessageParts
from newton.agent.loop.turn import TurnRunner
from newton.agent.loop.turn_types import PrivateConversation, TurnInput, TurnResult
from newton.agent.maintenance.service import BATCH_SIZE
from newton.agent.services.sessions import SessionService
from newton.deadline import RequestDeadline
from newton.fault_isolation import run_part
from newton.operations.caller import OperationCaller
from newton.operations.declaration import Operation
from newton.operations.runner import parse_arguments, run_operation
from newton.providers.context_windows import ContextWindow, WindowedModel
from newton.runtime.chat_backend.protocol import DebugLines, ImageInput, ImagePart, PrivateMessage
from newton.runtime.chat_backend.view_models import (
    TurnView,
    to_turn_view,
)

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices


@dataclass(slots=True, kw_only=True)
class LocalAgent:
    """A chat backend that calls the agent's services in this process. `origin` is recorded with all that it stores.

    `approve` asks the person at the terminal whether a tool of an MCP server may be called. `deadline` ends the search
    of memory, if the backend serves one request; None gives each turn the default time.
    """

    newton: "AgentServices"
    turn_runner: TurnRunner
    origin: str = "chat"
    approve: ApprovalCallback | None = None
    deadline: RequestDeadline | None = None

    @property
    def agent(self) -> str:
        return self.newton.settings.agent

    @property
    def model(self) -> str | None:
        return self.turn_runner.model.name if self.turn_runner.model else None

    async def find_window(self) -> ContextWindow | None:
        model = self.turn_runner.model
        return await model.find_window() if isinstance(model, WindowedModel) else None

    async def select_model(self, name: str) -> str:
        selected = await self.newton.models.select(self.turn_runner.model, name)
        self.turn_runner = replace(self.turn_runner, model=selected)
        return selected.name

    async def list_models(self) -> Sequence[str]:
        return await self.newton.models.list_names(self.turn_runner.model)

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
        text, images = input if isinstance(input, ImageInput) else (input, ())
        if private is None:
            turn_input = TurnInput(session_id=await self._sessions.begin(session), text=text, frame=frame)
        else:
            turn_input = await self._create_private_input(session, text, frame, private)
        debug: list[str] = []
        on_debug = debug.extend if include_context else None
        turn_input = replace(turn_input, strategy=strategy, on_debug=on_debug, approve=self.approve)
        turn_input = replace(turn_input, input_parts=to_message_parts(text, images), deadline=self.deadline)
        async with aclosing(self.turn_runner.run(turn_input)) as pieces:  # an abandoned turn is stored too
            async for piece in pieces:
                if debug:
                    yield DebugLines(tuple(debug))
                    debug.clear()
                if isinstance(piece, str):
                    yield piece
                elif isinstance(piece, TurnResult):
                    yield to_turn_view(piece, include_context=include_context)

    async def _create_private_input(
        self, session: str, text: str, frame: str | None, earlier: Sequence[PrivateMessage]
    ) -> TurnInput:
        messages = [IncomingMessage(one.role, one.text) for one in (*earlier, PrivateMessage("user", text))]
        conversation = PrivateConversation(
            view=to_private_view(messages, scope=self.newton.scope),
            question=text,
            session_id=await self._sessions.find(session),
        )
        return TurnInput(session_id=None, text=text, frame=frame, already_stored=True, private=conversation)

    async def process_pending(self, limit: int | None = BATCH_SIZE) -> None:
        maintenance, failed = self.newton.maintenance(self.origin), dict[str, str]()
        await maintenance.process_recent(limit, failed=failed)

    async def learn(self) -> None:
        learning = self.newton.maintenance(self.origin).learn_if_possible()
        await run_part("extraction", learning, default=None, missing={})

    async def attach_file(self, session: str, name: str, raw: bytes, *, ref: str) -> None:
        ingest = self.newton.ingest(self.origin)
        read = await ingest.read_upload(raw, name=name, ref=ref)
        await ingest.store_upload(read, trust="user")
        await self.newton.artifacts(self.origin).add(session, name, read.text)

    async def run_operation(self, operation: Operation, arguments: Mapping[str, object]) -> object:
        caller = OperationCaller(newton=self.newton, origin=self.origin, speaker="person")
        return (await run_operation(operation, parse_arguments(operation, arguments), caller)).result

    @property
    def _sessions(self) -> SessionService:
        return self.newton.sessions(self.origin)


def to_message_parts(text: str, images: Sequence[ImagePart]) -> MessageParts | None:
    """Return an input with its images as content parts of OpenAI's format; None without images."""
    if not images:
        return None
    urls = ({"type": "image_url", "image_url": {"url": one.url}} for one in images)
    return MessageParts(text, ({"type": "text", "text": text}, *urls))
