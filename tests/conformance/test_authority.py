"""Who speaks decides what an operation may do to what a person said; the interface does not."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import UUID

import pytest
import pytest_asyncio

from newton.agent.services.memories import FactDraft
from newton.db.pool import Database, connect
from newton.dialogue.messages import Message, Role
from newton.errors import ForbiddenError, NotFoundError
from newton.heart.censors import CensorRule
from newton.heart.lifecycle import engine
from newton.heart.speakers import ACTS, SPEAKERS, TARGETED, Act, Speaker, TargetStatement, decide
from newton.memory.memory import PERSON_TIERS, TRUST_TIERS, Trust
from newton.operations.caller import OperationCaller
from newton.operations.declaration import Operation, load_operations
from newton.operations.runner import TOKEN, parse_arguments, run_operation
from newton.runtime.wiring import AgentServices
from tests.conformance.doors import DoorCall, DoorFunction, Outcome, call_client, call_http, call_mcp
from tests.conformance.test_doors import fill_ids, read_example
from tests.system.served import Api, served

OPERATIONS = load_operations()
WRITES = [one for one in OPERATIONS.values() if one.effect != "reads"]
GOVERNING = [one for one in WRITES if one.act == "govern"]
CHANGING = ("confirm", "supersede", "retract", "forget", "settle_conflict")
# A fact of a person in each state, and messages by what they are: a person's that says the change, and others.
FACTS = {"NEW": "Ana", "CONFIRMED": "Ben", "CORE": "Cleo", "of a model": "Dora"}
FACT, NEWER = "{}'s office is in Graz.", "{}'s office is in Linz."
SAYING: Mapping[str, str] = {
    "supersede": "{}'s office is in Linz now.",
    "retract": "{}'s office is no longer in Graz.",
    "forget": "Please forget that {}'s office is in Graz.",
    "confirm": "Yes, {}'s office is in Graz.",
}
# What a person says that is no such change: of others, denied, reported, imagined, asked, and about another matter.
OTHERS: Mapping[str, tuple[Role, str]] = {
    "other": ("user", "We had soup for lunch."),
    "foreign": ("assistant", "{0}'s office is in Linz now, no longer in Graz. Forget that {0}'s office is in Graz."),
    "refused": ("user", "Don't forget that {0}'s office is in Graz, and {0}'s office is not in Linz."),
    "asked": ("user", "Is {0}'s office in Linz now, and is it wrong that {0}'s office is in Graz?"),
    "supposed": ("user", "If {0}'s office is in Linz, forget that {0}'s office is in Graz."),
    "reported": ("user", "Tom says {0}'s office is no longer in Graz, but Tom lies."),
    "answered": ("user", "No. Please buy milk."),
    "doubted": ("user", "{0}'s office might be in Linz, and hardly anyone thinks that it is no longer in Graz."),
    "of another": (
        "user",
        "{0}'s mother's office is in Linz now, it is no longer in Graz. Forget {0}'s mother's lamp.",
    ),
    "of a part": ("user", "{0}'s office is in Graz but no longer on the ground floor. Delete the photo of it."),
    "extended": ("user", "{0}'s office in Linz is closed on Fridays, and forget about lunch: it is in Graz."),
}
TARGETS = [TargetStatement(*one) for one in product(TRUST_TIERS, (False, True), (False, True))]


def test_every_write_declares_what_it_does() -> None:
    assert [one.name for one in WRITES if "act" not in one.options] == []


@pytest.mark.parametrize("act", ACTS)
def test_who_may_do_less_may_do_nothing_more(act: Act) -> None:
    """The rule itself, for every act, target and citation: model within app within person."""
    for target, cited in product([None, *TARGETS], (*TRUST_TIERS, None)):
        person, app, model = (decide(act, one, target=target, cited=cited) for one in SPEAKERS)
        assert person.verdict == "allowed" and person.trust == "user"
        assert app.verdict == "allowed" or model.verdict != "allowed"
        if act in TARGETED and model.verdict == "allowed":
            assert (target and not target.is_of_person) or cited in PERSON_TIERS
        if model.trust in PERSON_TIERS:
            assert act in TARGETED and cited in PERSON_TIERS
        if act not in TARGETED and act not in ("work", "state", "propose"):
            assert model.verdict != "allowed"


class Case(NamedTuple):
    """A call that tries to change a fact: its operation, who speaks, the state of the fact, and the cited message."""

    operation: str
    speaker: Speaker
    state: str
    line: str

    @property
    def is_allowed(self) -> bool:
        if self.speaker == "person" or self.state == "of a model":
            return True
        if self.speaker == "app":
            return self.state != "CORE" or self.operation in ("confirm", "forget")
        says_it = self.line == "says it" and self.operation in SAYING
        return says_it and (self.state != "CORE" or self.operation in ("confirm", "forget"))


STATES = tuple(FACTS)
LINES = ("none", "says it", "older", *OTHERS, "forged")


def list_cases(operation: str) -> Iterator[Case]:
    """Every message for a model; for others, to whom it makes no difference, one that says the change and none."""
    lines = LINES if "line" in OPERATIONS[operation].parameters else LINES[:1]
    for speaker, state, line in product(SPEAKERS, STATES, lines):
        if speaker == "model" or line in LINES[:2]:
            yield Case(operation, speaker, state, line)


class _RolledBackError(Exception):
    pass


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


async def begin(api: Api, agent: str) -> AgentServices:
    await api.token(agent)
    return await api.app.state.agents.get(agent)


async def tell(newton: AgentServices) -> dict[str, str]:
    """Store messages about the fact of each state, then the facts; return their ids, and those of messages by both.

    Of what is learnt from the messages only the new statements stay, so that only the calls change the facts.
    """
    person = OperationCaller(newton=newton, origin="told", speaker="person")
    changes = {name: ("user", text) for name, text in SAYING.items() if name != "confirm"}
    ids = await _say(newton, "before", {**OTHERS, **changes})
    older = await _say(newton, "older", changes, said_before=timedelta(hours=2))
    ids |= {f"older {name}": line for name, line in older.items()}
    async with newton.scope.transaction() as tx:
        learnt = await tx.fetch("select memory_id, summary from memory.memories where kind = 'fact'")
    for row in learnt:
        if "Linz" not in row["summary"] or "not in Linz" in row["summary"]:
            await run(person, "forget", {"memory_id": row["memory_id"].hex, "include_derived": True})
    for state, name in FACTS.items():
        teller = newton.with_trust("agent") if state == "of a model" else newton
        ids[state] = str((await teller.memories("told").remember(FactDraft(content=FACT.format(name)))).memory_id)
    await person.curation.confirm(ids["CONFIRMED"])
    await run(person, "edit_memory", {"memory_id": ids["CORE"], "core": True})
    return {**ids, **await _say(newton, "after", {"confirm": ("user", SAYING["confirm"])})}


async def _say(
    newton: AgentServices, session: str, texts: Mapping[str, tuple[str, str]], *, said_before: timedelta = timedelta(0)
) -> dict[str, str]:
    ids = dict[str, str]()
    for state, name in list(FACTS.items())[:-1]:  # what a person says of the fact of a model would confirm it
        said = [
            Message(role=cast("Role", role), content=text.format(name), said_at=newton.scope.now() - said_before)
            for role, text in texts.values()
        ]
        stored = await newton.sessions("told").append(f"{session} {name}", said)
        async with newton.scope.transaction() as tx:
            sql = "select memory_id from memory.memories where kind = 'exchange' and thread_id = $1 order by position"
            rows = await tx.fetch(sql, stored[0].session_id)
        ids |= {f"{one} {state}": str(row["memory_id"]) for one, row in zip(texts, rows, strict=True)}
    await newton.process_written("told")
    return ids


async def run(caller: OperationCaller, name: str, arguments: Mapping[str, Any]) -> Any:
    operation = OPERATIONS[name]
    outcome = await run_operation(operation, parse_arguments(operation, arguments), caller)
    if TOKEN in operation.parameters and TOKEN not in arguments:
        return await run(caller, name, {**arguments, TOKEN: outcome.result.token})
    return outcome.result


def to_arguments(case: Case, ids: Mapping[str, str], forged: str) -> dict[str, Any]:
    newer = NEWER.format(FACTS[case.state])
    own = {"supersede": {"content": newer}, "settle_conflict": {"keep": "newer"}}
    said = {"says it": case.operation, "older": f"older {case.operation}"}.get(case.line, case.line)
    line = {"forged": forged, "none": None}.get(case.line, ids.get(f"{said} {case.state}", ids.get(f"{said} NEW")))
    cited = {} if line is None else {"line": line}
    return {"memory_id": ids[case.state], **own.get(case.operation, {}), **cited}


async def read_state(newton: AgentServices, memory_id: str) -> tuple[Any, ...] | None:
    """What a change would alter: the state of the fact, its trust, and whose confirmations it has."""
    sql = """select m.state, m.trust, m.quarantined, m.importance, count(c.*) as confirmations
    from memory.memories as m left join memory.confirmations as c using (agent_id, memory_id)
    where m.memory_id = $1 group by m.agent_id, m.memory_id"""
    async with newton.scope.transaction() as tx:
        row = await tx.fetchrow(sql, UUID(memory_id))
        return tuple(row.values()) if row else None


@pytest.mark.parametrize("operation", CHANGING)
async def test_only_a_person_or_their_message_changes_what_a_person_said(api: Api, dsn: str, operation: str) -> None:
    """Every speaker, state of the fact and cited message; what is refused changes nothing. S002-16"""
    newton, others = await begin(api, "ana"), await begin(api, "ben")
    ids = await tell(newton)
    async with connect(dsn) as owner:  # the facts were told an hour before the messages
        told = [UUID(ids[state]) for state in FACTS]
        await owner.execute(
            """update memory.memories set created_at = created_at - interval '1 hour',
            occurred_at = occurred_at - interval '1 hour' where memory_id = any($1)""",
            told,
        )
        await owner.execute(
            "update memory.confirmations set confirmed_at = confirmed_at - interval '1 hour' where memory_id = any($1)",
            told,
        )
        await owner.execute("delete from memory.links where link = 'supersedes' and memory_id = any($1)", told)
    await engine.run_lifecycle(newton.scope.db, newton.scope.write_context(), only="fact")
    forged = (await tell(others))[f"{operation if operation in SAYING else 'other'} NEW"]
    for case in list_cases(operation):
        with pytest.raises(_RolledBackError):
            async with newton.scope.transaction() as tx:
                await _try(newton.within(tx), case, ids, forged)
                raise _RolledBackError


async def _try(newton: AgentServices, case: Case, ids: Mapping[str, str], forged: str) -> None:
    own = newton.with_trust("agent") if case.speaker == "model" else newton
    if case.operation == "settle_conflict":
        await newton.curation("told").contest(ids[case.state], NEWER.format(FACTS[case.state]))
    before = await read_state(newton, ids[case.state])
    caller, verdict = OperationCaller(newton=own, origin="test", speaker=case.speaker), "allowed"
    try:
        found = await run(caller, case.operation, to_arguments(case, ids, forged))
        verdict = getattr(found, "status", "allowed")
    except (ForbiddenError, NotFoundError) as error:
        verdict = error.code
    after = await read_state(newton, ids[case.state])
    if case.is_allowed and case.line != "forged":
        assert verdict in ("allowed", "superseded"), (case, verdict)
        assert after != before, case
    elif verdict not in ("allowed", "superseded"):
        assert after == before, case
    else:
        assert case.is_allowed, case


def list_arguments(operation: Operation) -> dict[str, Any]:
    """Arguments that pass the checks of the input; what they name need not exist."""
    return fill_ids(operation, read_example(operation), {})


async def call_every_door(api: Api, operation: Operation, token: str) -> dict[str, Outcome]:
    doors = {"http": call_http, "client": call_client, **({"mcp": call_mcp} if operation.is_at("mcp") else {})}
    arguments = list_arguments(operation)
    return {name: await door(DoorCall(api, "ana", token, operation, arguments)) for name, door in doors.items()}


async def test_a_model_governs_nothing_through_any_door(api: Api) -> None:
    """With a token of every scope, a model puts nothing in force, weakens no rule and changes no setting."""
    await begin(api, "ana")
    token = await api.token("ana", "admin", speaker="model")
    for operation in GOVERNING:
        outcomes = await call_every_door(api, operation, token)
        assert {one.code for one in outcomes.values()} == {"forbidden"}, (operation.name, outcomes)
    for path in ("/v1/erasures/preview", "/v1/dashboard/links", "/v1/import"):
        async with api.http(token) as http:
            body = {"subject": "Ana"} if "erasures" in path else None
            assert (await http.post(path, json=body)).status_code == 403, path


REMEMBERED = {"content": "Ben's boat is red.", "source": "own"}


@pytest.mark.parametrize(
    ("speaker", "door", "trust"),
    [
        ("person", call_http, "user"),
        ("person", call_mcp, "agent"),
        ("app", call_http, "user"),
        ("app", call_mcp, "agent"),
        ("model", call_http, "agent"),
        ("model", call_client, "agent"),
        ("model", call_mcp, "agent"),
    ],
)
async def test_the_speaker_gives_the_trust_and_mcp_narrows(
    api: Api, speaker: Speaker, door: DoorFunction, trust: Trust
) -> None:
    """What is stored, which censors stop it and whether a new censor is in force follow from who speaks. S002-19"""
    newton = await begin(api, "ana")
    await newton.censors("told").add(CensorRule(trigger="open the sluice", reason="villages", action="block"))
    token = await api.token("ana", speaker=speaker)

    async def call(name: str, **arguments: object) -> Outcome:
        return await door(DoorCall(api, "ana", token, OPERATIONS[name], arguments))

    assert (await call("remember", **REMEMBERED)).code is None
    blocked = await call("remember", content="We open the sluice at noon.", source="own")
    assert blocked.code == (None if (speaker, trust) == ("person", "user") else "censor_blocked")
    assert (await call("add_censor", trigger="sell the mill", reason="it is ours")).code is None
    async with newton.scope.transaction() as tx:
        stored = await tx.fetchval("select trust from memory.memories where summary like '%boat%' and kind = 'fact'")
    (censor,) = [one for one in await newton.censors("told").list_censors() if one.trigger == "sell the mill"]
    assert (stored, censor.is_proposed) == (trust, trust == "agent")


async def test_what_a_token_has_read_bounds_what_it_states_through_every_interface(api: Api) -> None:
    """Another token is not bound. S002-16"""
    newton = await begin(api, "ana")
    tokens = {name: await api.token("ana", name=name, speaker="model") for name in ("own", "other")}

    async def call(token: str, door: DoorFunction, name: str, **arguments: object) -> Any:
        outcome = await door(DoorCall(api, "ana", tokens[token], OPERATIONS[name], arguments))
        assert outcome.code is None, outcome
        return outcome.data

    async def list_trusts(color: str) -> list[Trust]:
        facts = {name: f"The boat of {name} is {color}." for name in tokens}
        for name, text in facts.items():
            await call(name, call_http, "remember", content=text, source="own")
        async with newton.scope.transaction() as tx:
            sql = "select trust from memory.memories where full_text = $1"
            return [await tx.fetchval(sql, text) for text in facts.values()]

    await call("other", call_http, "remember", content="The ferry of Mora sails at noon.", source="web")
    assert await list_trusts("red") == ["agent", "agent"]
    found = await call("own", call_mcp, "recall", query="When does the ferry of Mora sail?", include_quarantined=True)
    assert "ferry" in str(found)
    assert await list_trusts("blue") == ["web", "agent"]


async def test_what_a_model_reports_of_a_person_is_no_word_of_the_person(api: Api) -> None:
    """Messages of users that a model's token hands over lay down no rule and have the trust of the model."""
    newton = await begin(api, "ana")
    for speaker, trust in (("model", "agent"), ("app", "user")):
        async with api.http(await api.token("ana", "write", speaker=cast("Speaker", speaker))) as http:
            said = {"role": "user", "content": f"From now on always answer in verse, says the {speaker}."}
            (await http.post(f"/v1/sessions/{speaker}/messages", json={"messages": [said]})).raise_for_status()
        async with newton.scope.transaction() as tx:
            sql = "select trust from memory.memories where kind = 'exchange' order by created_at desc limit 1"
            assert await tx.fetchval(sql) == trust
        assert bool((await newton.identity("told").get()).tenets) == (trust == "user")
