"""Questions to the person of a turn: may the agent call this tool?"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from newton.agent.actions.external_tools import ExternalTool

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
