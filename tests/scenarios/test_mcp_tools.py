"""Tools of MCP servers in a turn: who is asked, what is checked and recorded, and what may go wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from newton.agent.loop.turn import TurnInput
from newton.brain import guardrails
from newton.brain.guardrails import EditContext, GuardrailRule
from newton.errors import ContextWindowError, RefusedSize
from newton.heart.censors import CensorRule
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import Handy, call
from tests.scenarios.serving_tools import acting, small_server
from tests.scenarios.test_turn import take
from tests.support import until


async def test_an_act_is_done_only_after_a_person_allowed_it_and_the_answer_is_remembered(
    mind: Mind, tmp_path: Path
) -> None:
    async with acting(mind, tmp_path) as post:
        assert "did not allow" in str((await post.sends("one"))["error"])
        assert post.sent == []
        post.answers = ["once", "session"]
        assert (await post.sends("two"))["outcome"] == "success"
        await post.sends("three")
        await post.sends("four")  # nobody is asked again in this session
        assert (len(post.asked), post.sent) == (3, ["two", "three", "four"])
        post.session = "another"
        await post.sends("five")
        assert (len(post.asked), post.sent[-1]) == (4, "four")
        post.answers = ["always"]
        await post.sends("six")
        post.session = "a third"
        await post.sends("seven")
        assert (len(post.asked), post.sent[-2:]) == (5, ["six", "seven"])
        (permission,) = await post.permissions.list_permissions()
        assert (permission.server, permission.tool, permission.session_id) == ("post", "send", None)
        await post.permissions.revoke("post send")
        await post.sends("eight")
        assert len(post.asked) == 6
        post.answers = ["never"]
        await post.sends("nine")
        assert "forbidden" in str((await post.sends("ten"))["error"])
        assert (len(post.asked), post.sent[-1]) == (7, "seven")


async def test_a_call_that_is_stopped_while_the_tool_runs_is_listed_as_interrupted_with_an_event(
    mind: Mind, tmp_path: Path
) -> None:
    """Ctrl-C during a tool call: the tool may have acted (issue 22: an event and an outcome after each act)."""
    async with acting(mind, tmp_path, "stall", timeout_seconds=60) as post:
        post.answers = ["once"]
        turn = asyncio.create_task(post.sends("hello"))

        async def has_acted() -> bool:
            return post.sent == ["hello"]

        await until(has_acted)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        actions = await mind.fetch("select server, tool, permission, outcome from runtime.tool_actions")
        events = await mind.fetch("select summary from memory.memories where kind = 'event'")
        assert [tuple(row) for row in actions] == [("post", "send", "once", "interrupted")]
        assert "It is not known what the tool did." in events[0]["summary"] and len(events) == 1
        assert (await post.says("Still there?", "Alive.")).received[-1][-1].role == "user"


async def test_a_call_that_is_stopped_at_the_question_is_not_listed(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path) as post:
        post.asking = asyncio.Event()
        turn = asyncio.create_task(post.sends("hello"))
        await post.asking.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await mind.fetch("select 1 from runtime.tool_actions") == []
        assert await mind.fetch("select 1 from memory.memories where kind = 'event'") == []
        assert post.sent == []


async def test_without_a_person_only_what_was_allowed_before_is_done_and_the_refusal_names_the_command(
    mind: Mind, tmp_path: Path
) -> None:
    async with acting(mind, tmp_path) as post:
        refused = await post.sends("one", nobody=True)
        assert "`newton permissions allow post send`" in str(refused["hint"]) and post.sent == []
        tool = next(one for one in await post.pool.list_tools("ana") if one.name == "send")
        await post.permissions.allow(tool)
        assert (await post.sends("two", nobody=True))["output"] == "sent two"


async def test_a_read_runs_freely_only_if_its_server_is_trusted(mind: Mind, tmp_path: Path) -> None:
    look = [call("post__look", text="tides")]
    async with acting(mind, tmp_path) as post:
        assert "did not allow" in str((await post.says("Look.", look, "Done.")).told["error"])
        assert len(post.asked) == 1
    async with acting(mind, tmp_path, trust=True) as post:
        assert str((await post.says("Look.", look, "Done.")).told["output"]).startswith("found tides")
        assert post.asked == []
        (permission,) = await post.permissions.list_permissions()
        assert permission.source == "trust"


async def test_a_description_that_has_changed_asks_anew(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, "change") as post:
        post.answers = ["always"]
        await post.sends("one")
        await post.pool.close()  # as at the next start
        post.session = "s2"
        model = await post.says("Send it.", [call("post__send", text="two")], "Done.")
        assert "has changed since it was first seen" in post.asked[-1].reason
        assert (len(post.asked), post.sent) == (2, ["one"])
        assert "everybody" not in str(model.options), "no model reads a description that no person has allowed"
        assert "everybody" in post.asked[-1].tool.description
        post.answers = ["always"]
        await post.sends("three")
        assert "everybody" in str((await post.says("Hello.", "Hello.")).options)


@pytest.mark.parametrize("is_called", [True, False], ids=["called", "never called"])
async def test_a_tool_first_seen_as_acting_is_never_a_free_read_without_an_answer(
    mind: Mind, tmp_path: Path, *, is_called: bool
) -> None:
    """A trusted server that relabels a tool is asked about, also after a restart, and guardrails still see an act."""
    async with acting(mind, tmp_path, "relabel", trust=True) as post:
        if is_called:
            await post.sends("one")
        else:
            await post.says("Hello.", "Hello.")  # the tools are listed, and none is called
        post.file.touch()
        await post.pool.close()  # as at the next start
        refused = await post.sends("two", nobody=True)
        assert "It acted when it was first seen" in str(refused["error"]) and post.sent == []
        await post.sends("three")
        assert "now says that it only reads" in post.asked[-1].reason
        post.answers = ["always"]
        await post.sends("four")
        assert (await post.sends("five"))["outcome"] == "success"
        assert (len(post.asked), post.sent) == (2 + is_called, ["four", "five"])
        async with mind.scope.write() as (tx, ctx):
            rule = GuardrailRule(name="quiet", expression="'send' in tags", severity="block", message="Be quiet.")
            await guardrails.add(tx, rule, {}, ctx=EditContext(agent_id=ctx.agent_id, now=ctx.now, origin="cli"))
        assert "Be quiet" in str((await post.sends("six"))["error"])


async def test_a_read_of_a_trusted_server_that_has_changed_asks_also_if_it_was_never_called(
    mind: Mind, tmp_path: Path
) -> None:
    look = [call("post__look", text="tides")]
    async with acting(mind, tmp_path, trust=True) as post:
        await post.says("Hello.", "Hello.")
        await post.pool.close()
        post.pool.servers = {"post": small_server("good", post.file, trust=True, env={"NODE_OPTIONS": "--require x"})}
        assert "did not allow" in str((await post.says("Look.", look, "Done.")).told["error"])
        assert "has changed since it was first seen" in post.asked[0].reason


async def test_censors_and_guardrails_come_before_the_question(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path) as post:
        async with mind.scope.write() as (tx, ctx):
            rule = GuardrailRule(
                name="no-spam",
                expression="category == 'action' && 'send' in tags && description.contains('offer')",
                severity="block",
                message="Send no offers.",
            )
            edit = EditContext(agent_id=ctx.agent_id, now=ctx.now, origin="cli")
            await guardrails.add(tx, rule, {}, ctx=edit)
        await mind.censors.add(CensorRule(trigger="launch codes", reason="Secret.", action="block"))
        assert "censor" in str((await post.sends("the launch codes"))["error"])
        assert "Send no offers" in str((await post.sends("an offer"))["error"])
        assert (post.asked, post.sent) == ([], [])


async def test_the_result_is_data_of_a_tool_with_an_event_and_what_was_expected(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path) as post:
        post.answers = ["once"]
        sending = [call("post__send", text="hello", expected_result="Everybody gets it.")]
        model = await post.says("Send it.", sending, [call("remember", content="Ana likes tea.")], "Done.")
        told = json.loads(next(one for one in model.received[1] if one.role == "tool").text)
        assert (told["expected"], told["output"], post.asked[0].expected) == (
            "Everybody gets it.", "sent hello", "Everybody gets it.",
        )  # fmt: skip
        stored = await mind.fetch(
            "select kind, trust, quarantined from memory.memories where kind in ('fact', 'event')"
        )
        actions = await mind.fetch("select permission, outcome from runtime.tool_actions")
        assert {(row["kind"], row["trust"], row["quarantined"]) for row in stored} == {
            ("event", "tool", True),
        }  # fmt: skip
        assert [tuple(row) for row in actions] == [("once", "success")]


async def test_a_mistake_repeated_in_two_sessions_becomes_a_censor_that_a_person_approves_or_dismisses(
    mind: Mind, tmp_path: Path
) -> None:
    async with acting(mind, tmp_path) as post:
        post.answers = ["always"]
        for post.session, place in (("s1", "tower"), ("s1", "tower"), ("s2", "tower"), ("s2", "gate")):
            told = (await post.says("Fail.", [call("post__fail", text=f"the north {place}")], "Done.")).told
            assert ("censor is proposed" in str(told.get("note"))) == (post.session == "s2" and place == "tower")
        (proposed,) = await mind.censors.list_censors()
        assert (proposed.trigger, proposed.is_proposed, proposed.action) == ("post__fail the north tower", True, "warn")
        fail = [call("post__fail", text="the north tower")]
        assert "warning" not in (await post.says("Go.", fail, "Done.")).told, "it is not in force before"
        assert (await mind.censors.approve(proposed.memory_id.hex)).changed
        assert "failed 3 times" in str((await post.says("Go.", fail, "Done.")).told["warning"])
        await mind.censors.retire(proposed.memory_id.hex)
        assert "warning" not in (await post.says("Go.", fail, "Done.")).told
        assert [one.state for one in await mind.censors.list_censors()] in ([], ["RETIRED"])


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("hang", "did not answer within 0.5 s"),
        ("flood", "more than 4 MB"),
        ("chatter", "more than 16 MB"),
        ("die", "exited with status 3: out of memory"),
        ("spam", "more than 10,000 messages"),
        ("picture", "a message of more than 4 MB"),
    ],
)
async def test_a_server_that_fails_ends_the_turn_with_a_clear_message_and_the_session_lives(
    mind: Mind, tmp_path: Path, mode: str, said: str
) -> None:
    async with acting(mind, tmp_path, mode, trust=True, timeout_seconds=0.5 if mode == "hang" else 60) as post:
        model = await post.says("Look.", [call("post__look", text="tides")], "It failed.")
        assert said in str(model.told["output"]) and model.told["outcome"] == "failure"
        assert (await post.says("And now?", "All is well.")).offered[-1].count("post__look") == 1


async def test_tools_that_a_server_lists_wrongly_are_left_out_with_the_reason(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, "lie", trust=True) as post:
        model = await post.says("Look.", [call("post__promise", text="x")], "Done.")
        assert [name for name in model.offered[0] if name.startswith("post__")] == [
            "post__look", "post__send", "post__fail", "post__promise",
        ]  # fmt: skip
        reasons = " ".join(one.reason for one in post.pool.problems)
        assert all(text in reasons for text in ("bad name!", "other documents", "does not describe", "12,000"))
        assert "did not allow" in str(model.told["error"])
        post.answers = ["once"]
        model = await post.says("Look.", [call("post__promise", text="x")], "Done.")
        assert model.told["outcome"] == "failure" and "post__promise failed" in str(model.told["output"])


async def test_a_server_that_cannot_be_used_costs_the_turn_nothing_but_its_tools(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, "invalid") as post:
        post.pool.servers = {**post.pool.servers, "missing": small_server("good", tmp_path, command="no-such-command")}
        model = await post.says("Hello.", "Hello.")
        assert not [name for name in model.offered[0] if "__" in name]
        reasons = {one.server: one.reason for one in post.pool.problems}
        assert "invalid message" in reasons["post"] and "no command 'no-such-command'" in reasons["missing"]


async def test_a_frame_has_only_the_tools_that_its_list_allows(mind: Mind, tmp_path: Path) -> None:
    settings: Any = {"tools": ["look", "send"], "frames": {"debug": ["look"]}}
    async with acting(mind, tmp_path, trust=True, **settings) as post:
        for frame, names in (("debug", ["post__look"]), ("task", ["post__look", "post__send"])):
            model = Handy([call("post__send", text="x")], "Done.")
            turn = TurnInput(session_id=await mind.session("s1"), text="Send it.", frame=frame, approve=post.approve)
            await take(post.turns(model), turn)
            assert [name for name in model.offered[0] if name.startswith("post__")] == names
        assert (len(post.asked), post.sent) == (1, [])


class Narrow(Handy):
    """A model that refuses its first prompt as longer than its window."""

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        if not self.received:
            self.received.append(messages)
            self.offered.append([tool.name for tool in options.all_tools])
            raise ContextWindowError("Too long.", hint="Shorten it.", size=RefusedSize(window=610))
        async for piece in super().answer(messages, max_tokens=max_tokens, options=options):
            yield piece


async def test_a_tool_that_a_smaller_window_leaves_out_is_not_called(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, trust=True) as post:
        post.answers = ["once"]
        model = Narrow([call("post__send", text="x")], "Done.")
        turn = TurnInput(session_id=await mind.session("s1"), text="Send it.", approve=post.approve)
        await take(post.turns(model), turn)
        assert "post__send" in model.offered[0]
        assert not any("post__send" in names for names in model.offered[1:])
        assert any('"not_found"' in one.text for asked in model.received for one in asked)
        assert (post.asked, post.sent) == ([], [])


async def test_an_output_that_is_too_long_for_the_model_is_kept_whole_as_an_artifact(
    mind: Mind, tmp_path: Path
) -> None:
    long = tmp_path / "log.txt"
    long.write_text("\n".join(f"line {number}: the ferry leaves" for number in range(1_000)))
    reading = [call("read_artifact", search="line 500")]
    async with acting(mind, tmp_path, trust=True) as post:
        model = await post.says("Look.", [call("post__look", text=str(long))], reading, "Done.")
        first, second = (json.loads(one.text) for one in model.received[-1] if one.role == "tool")
        assert "line 500:" not in first["output"] and "left out" in first["output"]
        assert "read_artifact reads it" in first["artifact"]
        assert "line 500: the ferry leaves" in json.dumps(second)
