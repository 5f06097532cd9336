"""A mind whose turns have the tools of a small MCP server, and a person who answers its questions."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from newton.agent.actions.action_service import ActionService
from newton.agent.actions.external_tools import ApprovalAnswer, ApprovalRequest
from newton.agent.actions.permissions import PermissionService
from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.providers.chat import ToolCall
from newton.runtime.mcp_servers.servers import McpServerPool
from newton.setting_types import McpServerSettings
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import Handy, able, call
from tests.scenarios.test_turn import take

SCRIPT = Path(__file__).parents[1] / "mcp_stdio_server.py"


def small_server(mode: str, file: Path, **settings: object) -> McpServerSettings:
    args = (str(SCRIPT), mode, str(file))
    return McpServerSettings.model_validate({"command": sys.executable, "args": args, "timeout_seconds": 5, **settings})


@dataclass(slots=True)
class Acting:
    """A mind with an MCP server `post`; what was sent is in `file`.

    `answers` are those of the person, in order; with `asking`, the person is asked and does not answer.
    """

    mind: Mind
    pool: McpServerPool
    file: Path
    answers: list[ApprovalAnswer] = field(default_factory=list[ApprovalAnswer])
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    session: str = "s1"
    asking: asyncio.Event | None = None

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.asked.append(request)
        if self.asking:
            self.asking.set()
            await asyncio.Event().wait()
        return self.answers.pop(0) if self.answers else "refused"

    def turns(self, model: Handy) -> TurnRunner:
        turns = able(self.mind, model)
        assert turns.tools
        service = ActionService(
            scope=self.mind.scope.at("chat"),
            agent="ana",
            source=self.pool,
            gate=self.mind.gate,
            check_guardrails=turns.tools.decisions.check_guardrails,
        )
        return replace(turns, actions=service)

    async def says(self, text: str, *played: str | list[ToolCall], nobody: bool = False) -> Handy:
        """Run a turn in which the model does what it is told here; return the model."""
        model = Handy(*played)
        session_id = await self.mind.session(self.session)
        approve = None if nobody else self.approve
        await take(self.turns(model), TurnInput(session_id=session_id, text=text, approve=approve))
        return model

    async def sends(self, text: str, *, nobody: bool = False) -> dict[str, object]:
        """Run a turn in which the model sends a text; return what it was told of it."""
        return (await self.says("Send it.", [call("post__send", text=text)], "Done.", nobody=nobody)).told

    @property
    def sent(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    @property
    def permissions(self) -> PermissionService:
        return PermissionService(scope=self.mind.scope)


@asynccontextmanager
async def acting(mind: Mind, folder: Path, mode: str = "good", **settings: object) -> AsyncGenerator[Acting]:
    file = folder / "sent.txt"
    pool = McpServerPool(servers={"post": small_server(mode, file, **settings)})
    try:
        yield Acting(mind, pool, file)
    finally:
        await pool.close()
