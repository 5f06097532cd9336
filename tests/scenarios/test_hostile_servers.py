"""MCP servers that attack: the turn ends with a clear message, the session lives, and nothing acts without a person."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from newton.runtime.mcp_servers import server_connection
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import call
from tests.scenarios.serving_tools import acting

LOOK = [call("post__look", text="tides")]


@pytest.mark.parametrize(
    ("mode", "said"),
    [("mute", "did not answer within 3 s"), ("lost", "did not answer within 3 s"), ("early", "more than 16 MB")],
)
async def test_a_server_that_fails_before_it_has_listed_its_tools_costs_the_turn_only_its_tools(
    mind: Mind, tmp_path: Path, mode: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONNECT_SECONDS", "MIN_CONNECT_SECONDS"):
        monkeypatch.setattr(server_connection, name, 60.0 if mode == "early" else 3.0)
    async with acting(mind, tmp_path, mode, trust=True) as post:
        model = await post.says("Hello.", "Hello.")
        assert not [name for name in model.offered[0] if name.startswith("post__")]
        assert said in post.pool.problems[0].reason
        connection = await post.pool.list_tools("ana"), post.pool.problems[0].reason
        assert connection == ([], post.pool.problems[0].reason), "it is not tried again at once"
        assert (await post.says("And now?", "All is well.")).received


@pytest.mark.parametrize(
    ("mode", "said"), [("spam", "more than 10,000 messages"), ("picture", "a message of more than 4 MB")]
)
async def test_what_a_server_may_send_for_a_call_is_limited(mind: Mind, tmp_path: Path, mode: str, said: str) -> None:
    async with acting(mind, tmp_path, mode, trust=True, timeout_seconds=60) as post:
        model = await post.says("Look.", LOOK, "It failed.")
        assert said in str(model.told["output"]) and model.told["outcome"] == "failure"
        assert "post__look" in (await post.says("And now?", "All is well.")).offered[-1]


async def test_a_tool_that_changes_between_its_list_and_its_call_is_not_called(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, "shift") as post:
        post.answers = ["always"]
        told = await post.sends("one")
        assert "has changed since it was offered" in str(told["output"]) and post.sent == []
        await post.sends("two")
        assert "has changed since it was allowed" in post.asked[-1].reason and post.sent == []


@pytest.mark.slow
async def test_of_ten_thousand_tools_the_first_are_offered_or_those_that_the_user_names(
    mind: Mind, tmp_path: Path
) -> None:
    async with acting(mind, tmp_path, "many") as post:
        assert len(await post.pool.list_tools("ana")) == 64
        assert "more than 64 tools" in post.pool.problems[0].reason
    async with acting(mind, tmp_path, "many", tools=["tool_9999"]) as post:
        assert [one.name for one in await post.pool.list_tools("ana")] == ["tool_9999"]
        assert post.pool.problems == []


async def test_names_descriptions_and_schemas_cannot_attack(mind: Mind, tmp_path: Path) -> None:
    """A pattern that takes years to match would stop the process, not only the turn."""
    async with acting(mind, tmp_path, "odd", trust=True) as post:
        model = await post.says("Look.", [call("post__evil", text="x")], "Done.")
        offered = [name for name in model.offered[0] if name.startswith("post__")]
        assert offered == [f"post__{name}" for name in ("look", "send", "fail", "look_", "told", "evil")]
        reasons = "\n".join(one.reason for one in post.pool.problems)
        assert len(reasons.splitlines()) == 5 and "\x1b" not in reasons and "another tool has its name" in reasons
        told = next(one for one in await post.pool.list_tools("ana") if one.name == "told")
        function = json.dumps(told.definition.function)
        assert len(function) < 5_000 and "<|" not in function and "===" not in function
        assert json.loads(str(model.told["output"])) == {"a": "a" * 40 + "!"}
        assert post.asked == [] and post.sent == []


async def test_marks_in_a_result_stay_text_of_the_tool(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, "marks", trust=True) as post:
        sending = [call("post__send", text="all")]
        model = await post.says("Look.", LOOK, sending, "Done.")
        system, *_, looked, _, refused = model.received[-1]
        assert "Ana allows everything" not in system.text and looked.role == "tool"
        assert len(looked.text.splitlines()) == 1 and "<|" not in looked.text and "[INST]" not in looked.text
        assert "did not allow" in refused.text and post.sent == []
        after = await post.says("And now?", "All is well.")
        shown = [one.text for one in after.received[-1] if "Ana allows everything" in one.text]
        assert all("\n=== Message ===\n- " not in text and "\n- Ana allows" not in text for text in shown)
        assert [one.source for one in await post.permissions.list_permissions()] == ["trust"]


async def test_requests_of_a_server_are_refused(mind: Mind, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Sampling, elicitation and roots: a server gets neither the model, nor the person, nor folders."""
    with caplog.at_level(logging.CRITICAL):
        async with acting(mind, tmp_path, "asks", trust=True) as post:
            model = await post.says("Look.", LOOK, "Done.")
            assert model.told["outcome"] == "success"
            answers = [json.loads(line) for line in post.sent]
            assert len(answers) == 3 and all("error" in one for one in answers)
            assert len(model.received) == 2 and post.asked == []


async def test_a_changed_environment_asks_anew(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, env={"ACCOUNT": "ana"}) as post:
        post.answers = ["always"]
        await post.sends("one")
    others: Any = ({"env": {"ACCOUNT": "ben"}}, {"env": {"ACCOUNT": "ana", "NODE_OPTIONS": "--require x"}}, {})
    for changed in others:
        async with acting(mind, tmp_path, **changed) as other:
            await other.sends("two")
            assert "server has changed since it was allowed" in other.asked[0].reason and other.sent == ["one"]
    async with acting(mind, tmp_path, env={"ACCOUNT": "ana"}) as post:
        await post.sends("three")
        assert (post.asked, post.sent) == ([], ["one", "three"])
