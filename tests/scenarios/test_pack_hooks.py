"""Hooks of a pack in contexts and sessions: their effects, their place in the bundle, and their failures."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from newton.agent.services.sessions import SessionService
from newton.brain.pack_hooks import HookFunction, HookRunner, load_hooks
from newton.cognition.request import ContextBuildRequest
from newton.content.packs import PackHook
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import validate_event
from newton.providers import token_counter
from newton.providers.fakes import HashEmbedder
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_replay import hindsight
from tests.support import NOON

pytestmark = pytest.mark.failing_parts("hook call")

ASKED = "I want a refund for the boat."


def request(mind: Mind) -> ContextBuildRequest:
    return ContextBuildRequest(agent_id=mind.agent_id, input=ASKED, tokens=8_000, fill=True)


def hook(name: str, at: str, **fields: object) -> PackHook:
    return PackHook.model_validate({"name": name, "at": at, **fields}, strict=False)


def calls(at: str, function: HookFunction, timeout_ms: int = 2_000) -> HookRunner:
    return HookRunner(hooks=(hook("call", at, entry_point="x", timeout_ms=timeout_ms),), functions={"call": function})


RULES = load_hooks(
    [
        hook("ask-first", "before_assembly", rule="input.contains('refund')", effect={"lines": ["Ask for the order."]}),
        hook("as-debug", "before_assembly", rule="frame == ''", effect={"frame": "debug"}),
        hook("check", "after_assembly", rule="tokens > 0 && context.contains('order')", effect={"note": "It asks."}),
    ]
)


async def test_rules_change_a_context_and_are_in_its_bundle_and_in_its_replay(mind: Mind) -> None:
    # S001-A
    await mind.know("The boat is repaired in May.")
    asked = request(mind)
    bundle = await replace(mind.contexts, hooks=RULES).build(asked)
    assert "## Additional Context\n- Ask for the order.\n" in bundle.text and bundle.frame_choice.frame == "debug"
    assert bundle.tokens == token_counter.count(bundle.text)
    runs = bundle.as_json()["hooks"]
    assert [(run["name"], run["point"], run["effect"]) for run in runs] == [
        ("ask-first", "before_assembly", {"lines": ["Ask for the order."]}),
        ("as-debug", "before_assembly", {"frame": "debug"}),
        ("check", "after_assembly", {"note": "It asks."}),
    ]
    assert {run["duration"] for run in runs} <= {"instant", "fast", "slow"}
    assert (await hindsight(mind).replay(str(bundle.bundle_id))).identical
    explained = await hindsight(mind).explain(str(bundle.bundle_id))
    assert [run["name"] for run in explained.hooks] == ["ask-first", "as-debug", "check"]
    named = await replace(mind.contexts, hooks=RULES).build(replace(asked, frame="planning"))
    assert named.frame_choice.frame == "planning", "the caller's frame stays"


async def test_a_hook_that_fails_or_hangs_leaves_the_context_as_it_is_and_is_reported(mind: Mind) -> None:
    # S001-A
    await mind.know("The boat is repaired in May.")
    plain = await mind.contexts.build(request(mind))
    ended = threading.Event()

    def fail(_: Mapping[str, Any]) -> object:
        raise ValueError("no connection")

    for runner, problem in (
        (calls("before_assembly", fail), "ValueError: no connection"),
        (calls("after_assembly", lambda _: ended.wait(30), 20), "no result within 20 ms"),
    ):
        bundle = await replace(mind.contexts, hooks=runner).build(request(mind))
        assert bundle.text == plain.text
        assert [run["problem"] for run in bundle.as_json()["hooks"]] == [problem]
    ended.set()


def service(mind: Mind, hooks: HookRunner) -> SessionService:
    return replace(newton(mind, HashEmbedder()).sessions("test"), hooks=hooks)


def event(ref: str, kind: str, text: str, at: datetime = NOON) -> NewEvent:
    return NewEvent(ref=ref, event=validate_event(kind, at, {"text": text}))


async def test_hooks_drop_events_and_extract_relations(mind: Mind) -> None:
    # S001-A
    dropping = load_hooks([hook("no-noise", "before_record", types=["heartbeat"], rule="true", effect={"drop": True})])
    events = [event("1", "heartbeat", "still here"), event("2", "ticket_opened", "Ana reports the boat")]
    assert await service(mind, dropping).record_events("s1", events) == 1

    def extract(values: Mapping[str, Any]) -> object:
        assert values["type"] == "ticket_opened" and "Ana reports the boat" in values["text"]
        return {"relations": [{"source": "Ana", "type": "reported", "target": "Artemis"}]}

    extracting = calls("after_record", extract)
    assert (
        await service(mind, extracting).record_events("s1", [event("3", "ticket_opened", "Ana reports the boat")]) == 1
    )
    found = await newton(mind, HashEmbedder()).entities("test").find_relations("Ana", depth=1)
    assert [(one.source, one.type, one.target) for one in found] == [("Ana", "reported", "Artemis")]


async def test_the_beginning_and_end_of_a_session_run_hooks_once_and_failures_are_events(mind: Mind) -> None:
    # S001-A
    seen = list[str]()

    def note(values: Mapping[str, Any]) -> None:
        seen.append(values["session"])
        raise RuntimeError("broken")

    starting = service(mind, calls("session_start", note))
    session_id = await starting.begin("s1")
    assert await starting.begin("s1") == session_id and seen == [str(session_id)]
    await service(mind, calls("session_end", note)).close(session_id)
    assert len(seen) == 2
    rows = await mind.fetch("select payload from runtime.events where type = 'hook.failed' order by number")
    assert ["broken" in str(row["payload"]) for row in rows] == [True, True]
