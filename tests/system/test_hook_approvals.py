"""A coding agent is told of what waits for approval: at the start of a session, and once of what is new."""

from pathlib import Path
from uuid import uuid4

from tests.system.daemons import Daemon
from tests.system.test_hooks import CLAUDE, Agent


def test_what_waits_is_given_at_the_start_of_a_session_and_once_when_it_is_new(
    served: Daemon, house: Path, tmp_path: Path
) -> None:
    name = f"hooks{uuid4().hex[:8]}"
    served.begins(name)
    agent = Agent(daemon=served, data_dir=house / "data", name=name, project=tmp_path)
    with agent.client() as client:

        def propose(text: str) -> None:
            client.post("/v1/identity/proposals", json={"section": "value", "text": text}).raise_for_status()

        propose("Tea before talk")
        started = agent.given(CLAUDE, "SessionStart")
        assert '"Tea before talk"' in started and "newton identity accept" in started
        assert "Not in force" not in agent.given(CLAUDE, "UserPromptSubmit", prompt="What is in the shop?")
        propose("Cake after tea")
        shown = agent.given(CLAUDE, "UserPromptSubmit", prompt="What else is in the shop?")
        assert '"Cake after tea"' in shown and "Tea before talk" not in shown
        assert "Not in force" not in agent.given(CLAUDE, "UserPromptSubmit", prompt="What is under the shop?")
