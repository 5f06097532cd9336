"""Tools of servers as a turn sees them, and the questions to its person: may the agent call this tool?"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast

from newton.providers.chat import ToolDefinition

EXPECTED_FIELD = "expected_result"  # an argument that Newton adds to tools that act, and removes before the call


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTool:
    """A tool of a server.

    `name` is its name at the server, `full_name` the name under which a model calls it. It `is_read` if the server
    says that it changes nothing, and `is_trusted` if the user trusts the server in this. `fingerprint` is a hash of the
    server's address, and of the tool's description, schema and annotations. `change` says how it differs from the tool
    that the agent first saw under its name; it is empty if it does not.
    """

    server: str
    name: str
    description: str
    definition: ToolDefinition
    required: frozenset[str]
    fingerprint: bytes
    is_read: bool = False
    is_trusted: bool = False
    is_destructive: bool = True
    change: str = ""

    @property
    def full_name(self) -> str:
        return self.definition.name

    @property
    def runs_freely(self) -> bool:
        """Return whether the tool needs no permission: it only reads, as it did at first, and its server is trusted."""
        return self.is_read and self.is_trusted and not self.change

    def select_free(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments without those whose values the tool itself lists (`enum`)."""
        schema = cast("dict[str, dict[str, Any]]", self.definition.function["parameters"]).get("properties", {})
        return {name: value for name, value in arguments.items() if value not in schema.get(name, {}).get("enum", ())}


class ExternalResult(NamedTuple):
    """The output of a call as text, and whether the tool or its server failed.

    `whole_text` is the output before its middle was left out, with secrets; None if `text` has all of it.
    """

    text: str
    is_error: bool = False
    whole_text: str | None = None


class ServerProblem(NamedTuple):
    """Why a server, or one of its tools, cannot be used."""

    server: str
    reason: str


class ExternalToolSource(Protocol):
    """Connects to servers and calls their tools. No method raises an error of a server: it is part of the result."""

    async def list_tools(self, agent: str, *, is_user_memory: bool = False) -> Sequence[ExternalTool]:
        """Return the tools that an agent may use. Servers that are not connected are connected first.

        An agent that is the memory of one user of another agent has only the servers that name it.
        """
        ...

    def is_offered(self, tool: ExternalTool, frame: str | None) -> bool:
        """Return whether the settings of the tool's server allow the tool for this kind of input (frame)."""
        ...

    @property
    def problems(self) -> Sequence[ServerProblem]:
        """Return what was wrong with servers and tools when they were listed last."""
        ...

    async def call(self, tool: ExternalTool, arguments: Mapping[str, object]) -> ExternalResult: ...


ApprovalAnswer = Literal["once", "session", "always", "never", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A call that needs a permission.

    `arguments` is JSON. `reason` says why a person is asked although the tool may have a permission already; it is
    empty if it has none. `warnings` are those of censors and guardrails.
    """

    tool: ExternalTool
    arguments: str
    expected: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()


ApprovalCallback = Callable[[ApprovalRequest], Awaitable[ApprovalAnswer]]
