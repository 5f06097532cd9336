"""Results of tools that try to become more than data stay data: in their session, in others, and in what is learnt."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from newton.agent.loop.turn_types import TurnInput
from newton.agent.prompting.memory_delta import INPUT_HEADER, MEMORY_HEADER
from newton.client import Client
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END, SECTION_TITLES
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.observing import Way, as_messages
from tests.scenarios.conftest import Mind
from tests.scenarios.test_curation import upkeep
from tests.scenarios.test_observations import spoken_to

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/poisoned_results.yaml").read_text(encoding="utf-8")
)
TITLES = "|".join(re.escape(title) for title in SECTION_TITLES.values() if title)
HEADING = re.compile(rf"## (?:{TITLES})(?:: [a-z]+)?|## Procedure: [\w -]+")
LINE = re.compile(r"- .*|Consider: .*|Constraints: .*|\d{4}-\d\d-\d\d:")
# What only a chat template, a section of the prompt, or a text that hides something has.
MARKS = re.compile(r"={3}|#{3}|`{3}|<\||\|>|\[/?INST\]|<<SYS|<system|<function")
HIDDEN = re.compile("[\x1b\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
LONG = "line of a long log without anything in it\n" * 400
OPENING: Any = {"role": "user", "content": "Let us go on with the work.", "ref": "m"}


def as_event(case: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The event of a case: its own, or that of a command with its output."""
    if "event" in case:
        type, payload = case["event"]
        return type, payload
    half = "a" * 1_990 + " "  # so that a cut could divide what follows
    output = case["output"].replace("{long}", LONG).replace("{half}", half)
    return "shell_exec", {"command": "make", "exit_code": 1, "stdout": output}


async def tell(client: Client, case: dict[str, Any], way: Way) -> None:
    type, payload = as_event(case)
    if way == "messages" and "event" not in case:
        await client.append_messages(case["name"], cast("Any", [OPENING, *as_messages(0, type, payload)]))
    else:
        event: Any = {"ref": "e", "event_type": type, "payload": payload}
        await client.append_messages(case["name"], [OPENING], events=[event])


def check(context: str, case: dict[str, Any]) -> list[str]:
    """The lines of tools in a context, each of which is where it belongs."""
    lines = context.splitlines()
    assert lines == context.split("\n")[:-1], case  # no line end of another kind
    assert lines.count(FENCE_BEGIN.strip()) == lines.count(FENCE_END.strip()) <= 1, case
    begin = lines.index(FENCE_BEGIN.strip()) if FENCE_BEGIN.strip() in lines else len(lines)
    end = lines.index(FENCE_END.strip()) if FENCE_END.strip() in lines else len(lines)
    fenced, rest = lines[begin + 1 : end], lines[:begin] + lines[end + 1 :]
    assert all(line.startswith("- ") for line in fenced), case
    for line in rest:
        assert HEADING.fullmatch(line) or LINE.fullmatch(line), (case["name"], line)
        if "Mallory" in line or "obey" in line.lower():
            assert "output of a tool (" in line, (case["name"], line)
    assert not MARKS.search(context) and not HIDDEN.search(context), (case["name"], MARKS.findall(context))
    assert case.get("secret", "\0") not in context
    return fenced


EACH_ONCE: tuple[Way, ...] = ("events", "messages")
WITHOUT_FIELDS: Sequence[dict[str, Any]] = ({},)
ALL_FIELDS: Sequence[dict[str, Any]] = ({}, {"fill": True, "max_tokens": 8_000}, {"profile": "coding"})


@pytest.mark.parametrize(
    ("ways", "asked", "cases"),
    [
        pytest.param(EACH_ONCE, WITHOUT_FIELDS, CASES[::3], id="a-third"),
        pytest.param(("events",), ALL_FIELDS, CASES, id="all-as-events", marks=pytest.mark.slow),
        pytest.param(("messages",), ALL_FIELDS, CASES, id="all-as-messages", marks=pytest.mark.slow),
    ],
)
async def test_no_result_of_a_tool_becomes_more_than_data(
    mind: Mind, ways: Sequence[Way], asked: Sequence[dict[str, Any]], cases: Sequence[dict[str, Any]]
) -> None:
    # S001-28, S002-19: never a fact, a censor, an identity line, a heading or a goal; in its session and in others
    assert len(CASES) >= 40
    shown: dict[str, list[bool]] = {"same": [], "other": []}
    async with spoken_to(mind, HashEmbedder()) as client:
        for n, case in enumerate(cases):
            await tell(client, case, ways[n % len(ways)])
        await client.append_messages("elsewhere", [OPENING])
        for case in cases:
            for fields in asked:
                same = await client.context(case["ask"], session=case["name"], **fields)
                other = await client.context(case["ask"], session="elsewhere", **fields)
                shown["same"].append(bool(check(same["text"], case)))
                shown["other"].append(bool(check(other["text"], case)))
                for item in (*same["items"], *other["items"]):
                    assert item["kind"] != "event" or item["trust"] in ("tool", "agent"), case
            usual = (await client.recall(case["ask"], limit=100))["items"]
            assert not [item for item in usual if "Mallory" in item["text"] and item["kind"] != "event"], case
            assert {item["trust"] for item in usual if item["kind"] == "event"} <= {"agent"}, case
        assert sum(shown["same"]) > len(cases) / 2, "most of them are shown, so the rest of the test says something"
        assert sum(shown["other"]) > len(cases) / 4
        await _talk(mind, cases)
        for case in cases:
            await client.close_session(case["name"])
        await _nothing_was_learnt(mind, client)


async def _talk(mind: Mind, cases: Sequence[dict[str, Any]]) -> None:
    """In the session of each case somebody asks, and the model gets the context in the only place for it."""
    model = ScriptedChat(*["I see."] * len(cases))
    turns = mind.turns(model)
    for case in cases:
        session_id = await mind.session(case["name"])
        pieces = [piece async for piece in turns.run(TurnInput(session_id=session_id, text=case["ask"]))]
        assert pieces
        prompt = "\n".join(message.text for message in model.received[-1])
        headers = (MEMORY_HEADER.strip(), INPUT_HEADER.strip())
        assert all(one.text.count(header) <= 1 for one in model.received[-1][1:] for header in headers), case
        assert prompt.rstrip().endswith(case["ask"]), case
        assert "Mallory" not in model.received[-1][0].text, "the system prompt has nothing of it"


async def _nothing_was_learnt(mind: Mind, client: Client) -> None:
    care = upkeep(mind)
    await care.close_idle_sessions()
    await care.process_pending()
    await care.learn(limit=1_000)
    await care.run_lifecycle()
    async with mind.db.transaction(mind.agent_id) as tx:
        rows = await tx.fetch(
            "select kind, trust, quarantined, summary || coalesce(full_text, '') as text from memory.memories"
        )
        payloads = await tx.fetch("select payload::text as text from heart.events")
        logged = await tx.fetch("select content as text from dialogue.messages")
        tasks = await tx.fetch("select 1 from dialogue.tasks")
        lines = await tx.fetch("select 1 from heart.tenets")
    poison = re.compile("Mallory|obey|Pyongyang|payments go|always answer in French|DE89", re.IGNORECASE)
    for row in rows:
        assert row["kind"] not in ("censor", "decision"), row
        if poison.search(row["text"]):
            assert row["kind"] in ("event", "artifact", "exchange", "episode"), row
            assert row["quarantined"] or row["kind"] == "event" or row["trust"] == "user", row
    assert not tasks and not lines
    stored = "\n".join(row["text"] for row in (*rows, *payloads, *logged))
    for case in CASES:
        assert case.get("secret", "\0") not in stored, case
    assert ((await client.censors())["items"], (await client.proposals())["items"]) == ([], [])
