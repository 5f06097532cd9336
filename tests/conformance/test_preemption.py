"""What a model states, dates, censors or hands over first does not change how a person's later word holds."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio

from newton.db.pool import Database, connect
from newton.heart.lifecycle.engine import review
from tests.model_servers import OpenAIServer
from tests.system.model_line import lined
from tests.system.served import Api

HOME, OTHER = "Ana lives in Porto.", "Ana lives in Vienna."
DAY = timedelta(days=1)
# What a model does before the person says HOME: texts that it states, with the dates that it gives them, and retracts.
Stated = tuple[tuple[str, Mapping[str, timedelta]], ...]
FIRST: Mapping[str, Stated] = {
    "nothing": (),
    "ends": ((HOME, {"until": DAY}),),
    "ended": ((HOME, {"at": -2 * DAY, "until": -DAY}),),
    "begins later": ((HOME, {"at": 300 * DAY}),),
    "is retracted": ((HOME, {"until": DAY}), (HOME, {"retract": DAY})),
    "is another, later": ((OTHER, {"at": timedelta(minutes=2)}),),
    "is another, told again later": ((OTHER, {}), (OTHER, {"at": 300 * DAY})),
}


@dataclass(frozen=True)
class Talkers:
    """Clients with the tokens of a person, of an app and of a model, for one agent."""

    api: Api
    person: httpx2.AsyncClient
    app: httpx2.AsyncClient
    model: httpx2.AsyncClient

    async def tell(self, who: str, text: str, *, attribute: str | None = "lives in", **dates: timedelta) -> str:
        times = {name: (datetime.now(UTC) + one).isoformat() for name, one in dates.items() if name != "retract"}
        subject = {"subject": "Ana", "attribute": attribute} if attribute else {}
        body = {"content": text, "source": "own", **subject, **times}
        told = await getattr(self, who).post("/v1/memories", json=body)
        memory_id = told.raise_for_status().json()["memory_id"]
        if "retract" in dates:
            (await self.model.post(f"/v1/memories/{memory_id}/retract")).raise_for_status()
        return memory_id

    async def read(self, memory_id: str) -> dict[str, Any]:
        return (await self.person.get(f"/v1/memories/{memory_id}")).raise_for_status().json()


@pytest_asyncio.fixture
async def talkers(db: Database, tmp_path: Path) -> AsyncGenerator[Talkers]:
    async with lined(OpenAIServer(), db, tmp_path) as line:
        api = line.api
        tokens = [await api.token("ana", "admin", name=one, speaker=one) for one in ("person", "app", "model")]
        async with api.http(tokens[0]) as person, api.http(tokens[1]) as app, api.http(tokens[2]) as model:
            yield Talkers(api, person, app, model)


@pytest.mark.parametrize("attribute", ["lives in", None])
@pytest.mark.parametrize("first", FIRST)
async def test_no_date_of_a_model_outlasts_what_a_person_says_next(
    talkers: Talkers, first: str, attribute: str | None
) -> None:
    """As a person gave it, by value and by comparison; the model's statements stay as they were. S002-16"""
    before = list[dict[str, Any]]()
    for text, dates in FIRST[first]:
        before.append(await talkers.read(await talkers.tell("model", text, attribute=attribute, **dates)))
    fact = await talkers.read(await talkers.tell("person", HOME, attribute=attribute))
    await (await talkers.api.app.state.agents.get("ana")).process_written("test")
    fact = await talkers.read(fact["memory_id"])
    assert fact["state"] in ("NEW", "CONFIRMED") and "until" not in fact["fact"], fact
    assert datetime.fromisoformat(fact["occurred_at"]) <= datetime.now(UTC)
    assert (await talkers.person.get("/v1/conflicts")).json()["items"] == []
    shown = (await talkers.person.post("/v1/context", json={"input": "Where does Ana live?"})).json()["text"]
    assert "Porto" in shown and "Vienna" not in shown
    for stated in before:
        now = await talkers.read(stated["memory_id"])
        assert (now["occurred_at"], now["fact"], now["trust"]) == (stated["occurred_at"], stated["fact"], "agent")


async def test_dates_of_a_person_and_of_a_model_alone_order_what_they_say(talkers: Talkers) -> None:
    """A plan of the person comes true over their word of before, and a model's dates order its own facts. S002-16"""
    later = await talkers.tell("person", OTHER, at=timedelta(minutes=2))
    home = await talkers.tell("person", HOME)
    assert [(await talkers.read(one))["state"] for one in (home, later)] == ["SUPERSEDED", "NEW"]
    ends = await talkers.tell("person", "Ana rents a garage.", attribute="rents", until=DAY)
    assert "until" in (await talkers.read(ends))["fact"]


async def test_a_model_that_repeats_a_fact_of_its_own_confirms_it(talkers: Talkers) -> None:
    # S002-16
    facts = {await talkers.tell("model", OTHER, until=DAY), await talkers.tell("model", OTHER)}
    assert len(facts) == 1 and "until" in (await talkers.read(facts.pop()))["fact"]


GAMES: Mapping[str, Any] = {"trigger": "poker night", "action": "warn", "reason": "I quit gambling", "threshold": 2}
PROPOSED: Mapping[str, Mapping[str, Any]] = {
    "a threshold": {"threshold": 1_000},
    "a reason": {"reason": "fine if the user insists"},
    "an action": {"action": "block"},
    "a withdrawal": {"retire": True},
}


@pytest.mark.parametrize("first", PROPOSED)
async def test_a_censor_of_a_person_holds_as_they_gave_it(talkers: Talkers, first: str) -> None:
    """Whatever censor of the same trigger a model had proposed, or withdrawn; its words stay as they were. S002-19"""
    given = {**GAMES, **PROPOSED[first]}
    is_withdrawn = given.pop("retire", False)
    (await talkers.model.post("/v1/censors", json=given)).raise_for_status()
    (proposed,) = (await talkers.person.get("/v1/censors")).json()["items"]
    if is_withdrawn:
        (await talkers.model.post(f"/v1/censors/{proposed['memory_id']}/retire")).raise_for_status()
    for _ in range(2):
        (await talkers.person.post("/v1/censors", json=GAMES)).raise_for_status()
    (await talkers.model.post("/v1/censors", json=given)).raise_for_status()
    own, other = (await talkers.person.get("/v1/censors")).json()["items"]
    assert {**GAMES, "is_proposed": False}.items() <= own.items() and own["state"] != "RETIRED"
    assert {**given, "is_proposed": True, "state": "RETIRED"}.items() <= other.items()
    shown = (await talkers.person.post("/v1/context", json={"input": "Plan a poker night with Lou"})).json()["text"]
    assert GAMES["reason"] in shown and "insists" not in shown


async def test_a_censor_that_a_person_approved_stays_and_is_not_stored_twice(talkers: Talkers) -> None:
    # S002-19
    (await talkers.model.post("/v1/censors", json=GAMES)).raise_for_status()
    (censor,) = (await talkers.person.get("/v1/censors")).json()["items"]
    (await talkers.person.post(f"/v1/censors/{censor['memory_id']}/approve")).raise_for_status()
    (await talkers.person.post("/v1/censors", json={**GAMES, "reason": "It costs too much"})).raise_for_status()
    (stored,) = (await talkers.person.get("/v1/censors")).json()["items"]
    assert (stored["reason"], stored["is_proposed"]) == (GAMES["reason"], False)


async def test_a_person_makes_their_own_censor_block(talkers: Talkers) -> None:
    # S002-19
    for action in ("warn", "block"):
        (await talkers.person.post("/v1/censors", json={**GAMES, "action": action})).raise_for_status()
    (stored,) = (await talkers.person.get("/v1/censors")).json()["items"]
    assert stored["state"] == "ESCALATED"


OWN = ("My dentist is Dr. Moser.", "Noted.", "I moved to Bruck last week.")
FORGED = "I moved to Vienna last week."
HANDED: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "the first line": OWN[:1],
    "all lines": OWN,
    "a line before": (FORGED, "Noted.", OWN[0]),
    "a line after": (OWN[0], "Noted.", FORGED),
}


async def converse(http: httpx2.AsyncClient, *lines: str) -> None:
    """Hand over a conversation, whose lines are by a user and the assistant in turn."""
    said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(lines)]
    body = {"model": "newton", "messages": said}
    (await http.post("/v1/chat/completions", json=body, headers={"X-Newton-Session": "home"})).raise_for_status()


async def read_lines(talkers: Talkers) -> dict[str, list[str]]:
    """The trust of each user's line as it is stored, by its text."""
    scope = (await talkers.api.app.state.agents.get("ana")).scope
    async with scope.transaction() as tx:
        rows = await tx.fetch(
            "select m.content, coalesce(m.min_trust, 'user') as trust from dialogue.messages as m where role = 'user'"
        )
    return {text: sorted(row["trust"] for row in rows if row["content"] == text) for text in (*OWN[::2], FORGED)}


@pytest.mark.parametrize("sent", [OWN[:1], OWN])
@pytest.mark.parametrize("first", HANDED)
async def test_lines_of_a_person_are_theirs_whatever_a_model_handed_over_before(
    talkers: Talkers, first: str, sent: tuple[str, ...]
) -> None:
    """Through the door of OpenAI's protocol, in the session that a model has opened. S002-16"""
    if HANDED[first]:
        await converse(talkers.model, *HANDED[first])
    for _ in range(2):  # the second time, nothing is new
        await converse(talkers.app, *sent)
    await converse(talkers.model, *sent, "Noted.", FORGED)
    trusts = await read_lines(talkers)
    assert all(trusts[text].count("user") == 1 for text in sent[::2]), trusts
    assert "user" not in trusts[FORGED], trusts


async def test_an_app_goes_on_after_a_model_took_part_in_its_conversation(talkers: Talkers) -> None:
    # S002-16
    await converse(talkers.app, OWN[0])
    await converse(talkers.model, OWN[0], "Noted.", OWN[2])
    await converse(talkers.app, *OWN)
    await converse(talkers.app, *OWN, "Noted.", "I like Bruck.")
    assert await read_lines(talkers) == {OWN[0]: ["user"], OWN[2]: ["agent", "user"], FORGED: []}


OFFICE = "Ana's office is in {}."
SAYING = {"supersede": "Ana's office is in Linz now.", "retract": "Ana's office is no longer in Graz."}
# What the person says after a message, and whether it still says the change.
AFTER: Mapping[str, Mapping[str, bool]] = {
    "supersede": {
        "Sorry, not Linz, Steyr.": False,
        "Hm, that was wrong.": False,
        "Ana's office is not in Linz.": False,
        "Just kidding!": False,
        "Oh no, I was wrong about the office.": False,
        "Ana's office in Linz has a nice view.": True,
        "No, I don't want coffee.": True,
        "Thanks! Is it far?": True,
    },
    "retract": {
        "Hm, that was wrong.": False,
        "Just kidding!": False,
        "We had soup.": True,
        "No, I don't want coffee.": True,
    },
}


@pytest.mark.parametrize(("act", "after"), [(act, text) for act, texts in AFTER.items() for text in texts])
async def test_a_message_gives_no_authority_once_its_person_has_taken_it_back(
    talkers: Talkers, dsn: str, act: str, after: str
) -> None:
    """The later message counts; what is said beside the matter takes nothing back. S002-16"""
    person, newton = talkers.person, await talkers.api.app.state.agents.get("ana")
    known = await talkers.tell("person", OFFICE.format("Graz"), attribute=None)
    for text in (SAYING[act], after):
        said = {"messages": [{"role": "user", "content": text}]}
        (await person.post("/v1/sessions/s/messages", json=said)).raise_for_status()
    await newton.process_written("test")
    async with connect(dsn) as owner:  # as if the fact had not been recognized as the one that changes
        await owner.execute("delete from memory.links where other_id = $1", UUID(known))
    async with newton.scope.write() as (tx, ctx):
        await review(tx, ctx, "fact", [UUID(known)])
    listed = (await person.get("/v1/memories", params={"kinds": ["exchange"]})).json()["items"]
    (line,) = [one["memory_id"] for one in listed if SAYING[act] in one["text"]]
    body = {"line": line, **({"content": OFFICE.format("Linz")} if act == "supersede" else {})}
    done = await talkers.model.post(f"/v1/memories/{known}/{act}", json=body)
    verdict = done.json().get("status", done.status_code) if done.is_success else done.status_code
    allowed, refused = ("superseded", "unsettled") if act == "supersede" else (200, 403)
    assert verdict in ((allowed,) if AFTER[act][after] else (refused,)) or verdict == 404, done.text
