"""The interface between a chat and its agent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from newton.operations.declaration import Operation, load_operations
from newton.providers.context_windows import ContextWindow
from newton.runtime.chat_backend.view_models import (
    TurnView,
)


class PrivateMessage(NamedTuple):
    """A message of a private conversation, which is not stored."""

    role: Literal["user", "assistant"]
    text: str


class ImagePart(NamedTuple):
    """An image that is sent to the model with an input: its file name, and its content as a data URL."""

    name: str
    url: str


class ImageInput(NamedTuple):
    """An input with images for the model."""

    text: str
    images: Sequence[ImagePart]


class DebugLines(NamedTuple):
    """Comment lines of an event stream that describe what the model is sent in a turn. They come before the reply."""

    lines: Sequence[str]


class ChatBackend(Protocol):
    """The operations of a chat on one agent, in this process or in a daemon. All methods can raise NewtonError.

    `session` arguments are the names of sessions.
    """

    @property
    def agent(self) -> str:
        """Return the name of the agent."""
        ...

    @property
    def model(self) -> str | None:
        """Return the name of the chat model; None if no model is configured."""
        ...

    async def find_window(self) -> ContextWindow | None:
        """Return the context window of the chat model; None if neither the settings nor the server state it."""
        ...

    async def select_model(self, name: str) -> str:
        """Use the named model for the next turns, and return its full name.

        Raises ModelNotFoundError for an unknown name.
        """
        ...

    async def list_models(self) -> Sequence[str]:
        """List the names of the models that can be selected. Raises ProviderError if a model server does not answer."""
        ...

    def run_turn(
        self,
        session: str,
        input: str | ImageInput,
        *,
        frame: str | None = None,
        strategy: str | None = None,
        include_context: bool = False,
        private: Sequence[PrivateMessage] | None = None,
    ) -> AsyncGenerator[str | DebugLines | TurnView]:
        """Yield the pieces of the reply to `input`, and then the result of the turn. Images are sent to the model.

        `frame` is the kind of input; None chooses it. With `include_context`, debug lines come first, and the result
        contains the full context. `strategy` says how a long conversation is shortened (a compaction preset or a list
        of strategies); None means the setting. If the generator is closed early, the text so far is stored. If
        `private` is given, it has the earlier messages of a private conversation, and nothing of the turn is stored.
        """
        ...

    async def process_pending(self, limit: int | None = ...) -> None:
        """Index, embed and deduplicate new memories: at most `limit` in each step, or all if it is None."""
        ...

    async def learn(self) -> None:
        """Store idle sessions as episodes, and extract memories from a few of the conversations not read yet."""
        ...

    async def attach_file(self, session: str, name: str, raw: bytes, *, ref: str) -> None:
        """Store the text of a file as a document and as an artifact of the session, both under its name.

        `ref` identifies the document when the file is attached again. Raises InputError if the file has no text.
        """
        ...

    async def run_operation(self, operation: Operation, arguments: Mapping[str, object]) -> object:
        """Run an operation with the trust of a person, and return its result."""
        ...


async def run_named(backend: ChatBackend, operation: str, /, **arguments: object) -> Any:
    """Run the operation (function of Newton) with this name, and return its result."""
    return await backend.run_operation(load_operations()[operation], arguments)
