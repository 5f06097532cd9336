"""What a model reports of a person's decision, procedure or censor is shown, and neither weakens nor strengthens it."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from newton.agent.loop import tools
from newton.brain.drafts import DecisionDraft
from newton.brain.hash_chain import ChainHead
from newton.content.skills import SkillFile
from newton.db.pool import Database
from newton.heart.censors import CensorRule
from newton.heart.speakers import Speaker
from newton.operations.declaration import load_operations
from newton.runtime.wiring import AgentServices
from tests.conformance.doors import DoorCall, DoorFunction, call_client, call_http, call_mcp
from tests.support import NOON
from tests.system.served import Api, served

OPERATIONS = load_operations()
DECISION = {
    "description": "Send the crate by rail",
    "confidence": 0.8,
    "reasons": [{"kind": "analysis", "text": "it is heavy"}],
}
DOORS = [(call_http, "model"), (call_client, "model"), (call_mcp, "person")]


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


async def call(api: Api, speaker: Speaker, operation: str, door: DoorFunction = call_http, **arguments: object) -> Any:
    token = await api.token("ana", speaker=speaker)
    outcome = await door(DoorCall(api, "ana", token, OPERATIONS[operation], arguments))
    assert outcome.code is None, outcome
    return outcome.data


async def count_reviewed(newton: AgentServices) -> int:
    return len(await newton.decisions("test").list_reviewed_decisions())


@pytest.mark.parametrize(("door", "speaker"), DOORS)
async def test_a_person_reviews_what_a_model_has_reported(api: Api, door: DoorFunction, speaker: Speaker) -> None:
    """S002-20"""
    decision_id = (await call(api, "person", "decide", **DECISION))["decision_id"]
    newton = await api.app.state.agents.get("ana")
    said = {"decision_id": decision_id, "outcome": "failure", "lesson": "The train was late."}
    assert (await call(api, speaker, "review", door, **said))["counts"] is False
    shown = await newton.decisions("test").get(decision_id)
    assert shown.review is None and await count_reviewed(newton) == 0
    assert [one.text for one in shown.amendments] == ["The assistant reports: failure. The train was late."]
    assert (await call(api, "app", "review", decision_id=decision_id, outcome="success"))["counts"] is True
    (reviewed,) = await newton.decisions("test").list_reviewed_decisions()
    assert reviewed.outcome == "success"


async def test_a_model_reviews_its_own_decisions(api: Api) -> None:
    # S002-20
    decision_id = (await call(api, "model", "decide", **DECISION))["decision_id"]
    assert (await call(api, "model", "review", decision_id=decision_id, outcome="failure"))["counts"] is True
    assert await count_reviewed(await api.app.state.agents.get("ana")) == 1


@pytest.mark.parametrize("by_chat", [False, True])
async def test_the_review_of_a_person_takes_the_place_of_a_models(api: Api, *, by_chat: bool) -> None:
    """It becomes the outcome of every view, once; the model's stays in the ledger and as a report. S002-20"""
    said = {"decision_id": (await call(api, "model", "decide", **DECISION))["decision_id"], "outcome": "success"}
    newton = await api.app.state.agents.get("ana")
    decisions = newton.decisions("test")
    if by_chat:
        arguments = tools.TOOLS["review"].input_model.model_validate({**said, "lesson": "It was fast."})
        await tools.TOOLS["review"].handler(newton.toolset("chat"), arguments)
    else:
        await call(api, "model", "review", **said, lesson="It was fast.")
    token = {one: await api.token("ana", speaker=one) for one in ("model", "person")}

    async def review(speaker: Speaker, outcome: str) -> str | None:
        given = {**said, "outcome": outcome, "lesson": f"It was a {outcome}."}
        return (await call_http(DoorCall(api, "ana", token[speaker], OPERATIONS["review"], given))).code

    assert await review("model", "partial") == "conflict"
    assert await review("person", "failure") is None
    assert await review("person", "success") == "conflict"
    assert await review("model", "success") is None  # a report
    shown = await decisions.get(said["decision_id"])
    assert shown.review and (shown.review.verdict, shown.review.lesson) == ("failure", "It was a failure.")
    assert (shown.memory.outcome, shown.memory.state) == ("failure", "REVIEWED")
    assert [one.text for one in shown.amendments] == [
        "The assistant reports: success. It was fast.",
        "The assistant reports: success. It was a success.",
    ]
    (listed,) = await decisions.list_outcomes()
    assert (listed.outcome, listed.lesson) == ("failure", "It was a failure.")
    (counted,) = await decisions.list_reviewed_decisions()
    record, _ = await decisions.check_guardrails(DecisionDraft(description="Send it", confidence=0.5, at=NOON))
    assert (counted.outcome, record.judged, record.success_rate) == ("failure", 1, 0.0)
    assert isinstance(await decisions.verify_chain(), ChainHead)
    # what a person has judged, a model neither replaces nor erases
    for name, more in (("erase_decision", {"reason": "old"}), ("amend_decision", {"category": "cost"})):
        given = {"decision_id": said["decision_id"], **more}
        assert (await call_http(DoorCall(api, "ana", token["model"], OPERATIONS[name], given))).code == "forbidden"


@pytest.mark.parametrize("speaker", ["model", "app"])
async def test_a_text_that_amends_a_decision_says_whose_word_it_is(api: Api, speaker: Speaker) -> None:
    """Also that of a model on what it decided itself; a person's has no mark. S002-20"""
    decision_id = (await call(api, "model", "decide", **DECISION))["decision_id"]
    await call(api, speaker, "amend_decision", decision_id=decision_id, text="The crane is booked.")
    shown = await (await api.app.state.agents.get("ana")).decisions("test").get(decision_id)
    mark = {"model": " (said by the assistant)", "app": ""}[speaker]
    assert [one.text for one in shown.amendments] == [f"The crane is booked.{mark}"]


async def test_the_model_of_a_chat_reviews_no_decision_of_the_user(api: Api) -> None:
    # S002-20
    decision_id = (await call(api, "person", "decide", **DECISION))["decision_id"]
    newton = await api.app.state.agents.get("ana")
    arguments = tools.TOOLS["review"].input_model.model_validate({"decision_id": decision_id, "outcome": "failure"})
    result = await tools.TOOLS["review"].handler(newton.toolset("chat"), arguments)
    assert result.fields["noted"] == "failure" and await count_reviewed(newton) == 0


async def test_failures_that_a_model_reports_do_not_weaken_a_procedure_in_use(api: Api) -> None:
    # S002-18
    await api.token("ana")
    newton = await api.app.state.agents.get("ana")
    skill = SkillFile(name="debugging", description="How to find the cause of a failure", core=("Read the log.",))
    await newton.procedures("told").put(skill)

    async def read() -> tuple[str, int]:
        procedure = await newton.procedures("test").get("debugging")
        return procedure.state, procedure.activations

    before = await read()
    for door, speaker in DOORS:
        for _ in range(6):
            used = await call(api, speaker, "procedure_outcome", door, name="debugging", result="failure")
            assert used["counts"] is False
    await call(api, "model", "procedure_use", name="debugging", result="failure")
    assert await read() == before
    for _ in range(6):
        await call(api, "app", "procedure_outcome", name="debugging", result="failure")
    assert await read() == ("INEFFECTIVE", 6)


async def test_checks_that_a_model_counts_do_not_strengthen_a_censor(api: Api) -> None:
    """What the model itself writes counts, because Newton sees it. S002-19"""
    await api.token("ana")
    newton = await api.app.state.agents.get("ana")
    await newton.censors("told").add(CensorRule(trigger="open the sluice", reason="villages", threshold=2))

    async def read() -> tuple[str, int]:
        (censor,) = await newton.censors("test").list_censors()
        return censor.state, censor.activations

    for _ in range(3):
        await call(api, "model", "check_censors", text="We open the sluice.", counts=True)
    assert await read() == ("CREATED", 0)
    await call(api, "model", "remember", content="We open the sluice.", source="own")
    assert (await read())[1] == 1
    await call(api, "app", "check_censors", text="We open the sluice.", counts=True)
    assert await read() == ("ESCALATED", 2)
