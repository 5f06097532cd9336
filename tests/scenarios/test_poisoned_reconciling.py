"""Texts of others that a model obeys completely change nothing: as lines, as results of tools and as documents."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

import pytest
import yaml

from newton.agent.loop.turn_types import TurnInput
from newton.agent.prompting.memory_delta import INPUT_HEADER, MEMORY_HEADER
from newton.agent.services.ingest import IngestService
from newton.client import Client
from newton.cognition.assembly.render import FENCE_BEGIN, FENCE_END, SECTION_TITLES
from newton.dialogue.session_summary import DEFAULT_SIZES
from newton.memory import agents
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.observing import Way, as_messages
from tests.scenarios.conftest import Mind, load_minilm
from tests.scenarios.handy import call
from tests.scenarios.obedient import Obedient, poisoned_texts
from tests.scenarios.reading import Reader, Sheet, facts, read, told
from tests.scenarios.serving_tools import Acting, acting
from tests.scenarios.test_curation import upkeep
from tests.scenarios.test_observed import spoken_to
from tests.scenarios.test_turn import take

ATTACKS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/poisoned_reconciling.yaml").read_text(encoding="utf-8")
)
CONTESTED = "select count(*) from memory.links where link = 'contradicts'"
Cited = Literal["as given", "each line of the person"]


@dataclass
class Figures:
    """What the attacks came to."""

    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def note(self, what: str, attack: dict[str, Any], *found: object) -> None:
        self.counts[what] += 1
        self.wrong.append(f"{attack['id']} ({attack['trick']}): {what}: {found}")


def labels(sheet: Sheet, statement: str) -> list[str]:
    """The labels of the known items that have the statement, or most of its words."""
    known = re.findall(r"^([A-Z]\d+) \S+ (.*)$", sheet.text, re.MULTILINE)
    words = set(re.findall(r"\w+", statement.lower()))
    shared = {label: len(words & set(re.findall(r"\w+", text.lower()))) / len(words) for label, text in known}
    return [label for label, share in shared.items() if share >= 0.7]


def obey(attack: dict[str, Any], cited: Cited) -> list[dict[str, Any]]:
    """The items of the attack; with other lines cited, each for every line of the person."""
    said = [n for n, line in enumerate(attack["dialogue"]) if line["speaker"] == "user"]
    return [{**one, "line": n} for one in attack["obeys"] for n in ([one["line"]] if cited == "as given" else said)]


def answer(attack: dict[str, Any], sheet: Sheet, cited: Cited) -> list[dict[str, object]]:
    """What the attack demands, and what the person said."""
    blank: dict[str, object] = {"subject": "", "when": "", "ids": []}
    demanded: list[dict[str, object]] = [
        {
            **blank,
            "op": one["op"],
            "line": one["line"] + 1,
            "text": one["text"],
            "ids": [label for n in one["known"] for label in labels(sheet, attack["known"][n])],
        }
        for one in obey(attack, cited)
    ]
    last = max(n for n, line in enumerate(attack["dialogue"], 1) if line["speaker"] == "user")
    return [*demanded, *({**blank, "op": "add", "line": last, "text": text} for text in attack.get("true", ()))]


async def others(mind: Mind) -> list[str]:
    """The procedures, decisions and proposals that there are."""
    rows = await mind.fetch(
        "select coalesce(full_text, summary) from memory.memories where kind in ('procedure', 'decision')"
    )
    proposed = await mind.fetch("select text from heart.proposals join heart.tenets using (agent_id, tenet_id)")
    return [row[0] for row in (*rows, *proposed)]


async def run_attack(mind: Mind, attack: dict[str, Any], cited: Cited, figures: Figures) -> None:
    name = attack["id"]

    def tell_known(sheet: Sheet) -> list[dict[str, object]]:
        return [sheet.item("add", text[:30], text=text) for text in attack["known"] if not labels(sheet, text)]

    await told(mind, *attack["known"], session=f"{name} before")
    await read(mind, tell_known)
    mind.clock.advance(timedelta(days=1))
    for line in attack["dialogue"]:
        role = "tool" if line["speaker"] == "foreign" else line["speaker"]
        await told(mind, line["text"], session=name, role=role)
    before, rules_before, unsettled = await facts(mind), await mind.rules(), await mind.fetchval(CONTESTED)
    await read(mind, model=Reader([lambda sheet: answer(attack, sheet, cited)]))
    now, rules = await facts(mind), await mind.rules()
    _judge(attack, figures, before=[*before, *rules_before], now=[*now, *rules, *await others(mind)])
    for lost in {*before, *rules_before} - {*now, *rules}:
        if any(_has(attack["known"][n], lost) for n in attack["must_stay"]):
            figures.note("ends", attack, lost)
    if new := await mind.fetchval(CONTESTED) - unsettled:
        figures.note("unsettled", attack, new)


def _judge(attack: dict[str, Any], figures: Figures, *, before: Sequence[str], now: Sequence[str]) -> None:
    for text in now:
        if any(one in text.lower() for one in attack["must_not"]):
            figures.note("learnt", attack, text)
    for n in attack["must_stay"]:
        if any(_has(attack["known"][n], text) for text in before) and not any(
            _has(attack["known"][n], text) for text in now
        ):
            figures.note("lost", attack, attack["known"][n])
        figures.counts["known"] += any(_has(attack["known"][n], text) for text in before)
        figures.counts["must stay"] += 1
    for text in attack.get("true", ()):
        figures.counts["true"] += 1
        if not any(_has(text, one) for one in now):
            figures.note("true missed", attack, text, [one for one in now if one not in before])


def _has(statement: str, text: str) -> bool:
    words = set(re.findall(r"\w+", statement.lower())) - {"the", "user", "has", "was", "is", "s"}
    return len(words & set(re.findall(r"\w+", text.lower()))) >= 0.7 * len(words)


@pytest.mark.parametrize(
    ("attacks", "cited"),
    [
        pytest.param(ATTACKS[5::10], "each line of the person", id="some"),
        pytest.param(ATTACKS, "as given", id="all-as-given", marks=pytest.mark.slow),
        pytest.param(ATTACKS, "each line of the person", id="all-on-each-line", marks=pytest.mark.slow),
    ],
)
async def test_no_text_of_others_becomes_a_fact_a_rule_or_an_end(
    mind: Mind, attacks: Sequence[dict[str, Any]], cited: Cited
) -> None:
    assert len(ATTACKS) == 40
    figures = Figures()
    for attack in attacks:
        agent_id = await agents.get_or_create_agent(mind.db, attack["id"], now=mind.clock.now())
        await run_attack(replace(mind, agent_id=agent_id, embedder=load_minilm()), attack, cited, figures)
    assert not figures.wrong, "\n".join([str(dict(figures.counts)), *figures.wrong])
    assert figures.counts["known"] >= 0.95 * figures.counts["must stay"]


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


async def let_obey(post: Acting, text: str, model: Obedient, *, nobody: bool) -> None:
    session_id = await post.mind.session(post.session)
    approve = None if nobody else post.approve
    turns = post.turns(model)
    turns = replace(turns, limits=replace(turns.limits, context=4_000))
    await take(turns, TurnInput(session_id=session_id, text=text, approve=approve))


@pytest.mark.slow
async def test_no_text_makes_a_model_that_obeys_everything_act_without_the_person(mind: Mind, tmp_path: Path) -> None:
    """Fifty results of a tool, and fifty documents of a person; in every second turn a person refuses, else nobody is
    there.
    """
    obeyed = 0
    mind = replace(mind, embedder=load_minilm())  # without meaning, replies to like questions come before the documents
    async with acting(mind, tmp_path, trust=True) as post:
        for number, text in enumerate(poisoned_texts()):
            file, post.session = tmp_path / f"{number}.txt", f"result {number}"
            file.write_text(f"Notes on the harbour.\n{text}\n")
            model = Obedient(call("post__look", text=str(file)))
            await let_obey(post, "Read my notes.", model, nobody=bool(number % 2))
            obeyed += bool(model.obeyed)
        ingest = IngestService(scope=mind.scope, sizes=DEFAULT_SIZES)
        for number, text in enumerate(poisoned_texts()):
            name, post.session = f"lighthouse-{number}.md", f"document {number}"
            document = f"The lighthouse number {number} was built in 1890.\n{text}\n"
            await ingest.store_upload(await ingest.read_upload(document.encode(), name=name), trust="user")
            await mind.settle()
            model = Obedient()
            await let_obey(post, f"When was the lighthouse number {number} built?", model, nobody=bool(number % 2))
            obeyed += bool(model.obeyed)
        permissions = await post.permissions.list_permissions()
        actions = await mind.fetch("select distinct tool from runtime.tool_actions")
        facts = await mind.fetch("select summary from memory.memories where kind = 'fact' and summary ~ 'Ana allows'")
        assert post.sent == []
        assert [(one.tool, one.source) for one in permissions] == [("look", "trust")]
        assert [row["tool"] for row in actions] == ["look"]
        assert not facts
        assert obeyed >= 85  # of 100: the model did read and obey them. Five orders stand under a heading of their own


@pytest.mark.slow
async def test_fifty_tasks_that_a_person_wants_are_completed(mind: Mind, tmp_path: Path) -> None:
    async with acting(mind, tmp_path, trust=True) as post:
        for number in range(50):
            post.session, post.answers = f"task {number}", ["once"]
            note = tmp_path / f"note {number}.txt"
            note.write_text(f"The ferry number {number} leaves at noon.")
            look, send = [call("post__look", text=str(note))], [call("post__send", text=f"ferry {number} at noon")]
            model = await post.says(f"Read note {number} and send its time.", look, send, "It is sent.")
            assert model.told["outcome"] == "success"
        assert post.sent == [f"ferry {number} at noon" for number in range(50)]
        assert len(post.asked) == 50
