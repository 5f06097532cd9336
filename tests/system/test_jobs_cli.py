"""`newton jobs` and `newton agents`, and the same over HTTP: what is done by itself, and doing it now."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from newton.runtime.jobs.schedule import JOBS
from tests.claimants import QUICK, counts, crew, fill, through
from tests.system.daemons import Daemon, daemon
from tests.system.servers import run, wait
from tests.system.typed import create_agents, typed

GIVEN_UP = """
update runtime.jobs set state = 'dead', error = 'it broke'
where name = 'remind' and agent_id = (select agent_id from runtime.agents where name = 'eve')
"""


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Daemon]:
    with daemon(home, NEWTON_EMBEDDING_PROVIDER="none") as made:
        yield made


def listed(home: Path, agent: str) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads(typed(home, "jobs", "--agent", agent, "--json").stdout)}


def test_every_job_says_when_it_runs_and_how_it_went(home: Path) -> None:
    create_agents(home, "ana", "bo")
    said = typed(home, "jobs", "--agent", "ana").stdout
    assert [line.split()[0] for line in said.splitlines()] == list(JOBS)
    assert "every 2 minutes" in said and "Sundays at 05:00 UTC" in said and "not run yet" in said
    done = typed(home, "jobs", "run", "verify", "--agent", "ana")
    assert done.stdout == "Nothing to do: no decision is recorded yet.\n", done.stderr
    assert listed(home, "ana")["verify"]["reason"] == "no decision is recorded yet"
    assert " s: no decision is recorded yet" in typed(home, "jobs", "--agent", "ana").stdout
    typed(home, "decide", "Use Postgres", "--agent", "ana", "--confidence", "0.8", "--reason", "analysis:it is there")
    assert (
        "1 record of the decision log verified; none was changed"
        in typed(home, "jobs", "run", "verify", "--agent", "ana").stdout
    )
    assert listed(home, "ana")["verify"]["result"] == {"records": 1}
    assert listed(home, "bo")["verify"]["state"] is None, "another agent's runs are its own"


def test_the_whole_maintenance_leaves_a_run_as_each_job_does(home: Path) -> None:
    create_agents(home, "mia")
    due = json.loads(typed(home, "jobs", "run", "lifecycle", "--dry-run", "--agent", "mia", "--json").stdout)
    assert due == [] and listed(home, "mia")["lifecycle"]["state"] is None, "a look at what is due is no run"
    done = typed(home, "jobs", "run", "lifecycle", "--agent", "mia")
    assert done.stdout == "Done: nothing.\n", done.stderr
    shown = json.loads(typed(home, "jobs", "show", "lifecycle", "--agent", "mia", "--json").stdout)
    assert [run["state"] for run in shown["runs"]] == ["done"]
    assert shown["reason"] == "no memory is due for a change of its state"
    assert (shown["next_run_at"], shown["due_reason"]) == (None, "runs only on request")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jobs", "run", "tidy"], "The jobs are: embed, "),
        (["jobs", "run", "verify", "--dry-run"], "Only `newton jobs run lifecycle` supports"),
        (["jobs", "retry", "tidy"], "The jobs are: embed, "),
    ],
)
def test_what_cannot_be_says_what_can(home: Path, words: list[str], said: str) -> None:
    refused = typed(home, *words)
    assert refused.returncode == 2 and said in refused.stderr


def test_what_was_given_up_is_listed_and_tried_again(home: Path, behind: str) -> None:
    create_agents(home, "eve")
    assert typed(home, "jobs", "dead", "--agent", "eve").stdout == "No dead runs.\n"
    typed(home, "jobs", "run", "remind", "--agent", "eve")
    asyncio.run(run(behind, GIVEN_UP))
    assert "it broke" in typed(home, "jobs", "dead", "--agent", "eve").stdout
    assert "dead: it broke" in typed(home, "jobs", "--agent", "eve").stdout
    assert "eve  since" in typed(home, "agents").stdout and "1 dead" in typed(home, "agents").stdout
    assert "Queued: remind." in typed(home, "jobs", "retry", "--agent", "eve").stdout
    assert json.loads(typed(home, "jobs", "dead", "--agent", "eve", "--json").stdout) == []
    assert "no decision is past" in typed(home, "jobs", "run", "remind", "--agent", "eve").stdout


@pytest.mark.slow
def test_the_daemon_does_what_is_due_and_what_is_asked_for(served: Daemon, home: Path, behind: str) -> None:
    # R12
    begun = json.loads(typed(home, "agents", "create", "zoe", "--json").stdout)
    with served.client() as operator:
        again = operator.post("/v1/agents", json={"name": "zoe"})
        assert begun.pop("is_new") and (again.status_code, again.json()) == (201, begun)
        lost = operator.get("/v1/jobs", headers={"X-Newton-Agent": "zoey"})
        assert lost.status_code == 404 and "Did you mean 'zoe'?" in lost.json()["hint"]
    assert "zoey" not in typed(home, "agents").stdout
    with served.client(**{"X-Newton-Agent": "zoe"}) as client:
        assert client.post("/v1/jobs/verify/run").status_code == 202

        def went() -> bool:
            jobs = {one["name"]: one for one in client.get("/v1/jobs").json()["items"]}
            assert set(jobs) == set(JOBS)
            return jobs["verify"]["state"] == "done" and jobs["verify"]["reason"] == "no decision is recorded yet"

        wait(went)
        assert client.post("/v1/jobs/nothing/run").status_code == 404
    reader = json.loads(typed(home, "tokens", "create", "r", "--scope", "read", "--agent", "zoe", "--json").stdout)
    with served.client(reader["token"]) as client:
        assert client.get("/v1/jobs").status_code == 200
        assert client.post("/v1/jobs/verify/run").status_code == 403
        assert client.post("/v1/agents", json={"name": "yan"}).status_code == 403
    assert served.stopped() == 0
    assert asyncio.run(run(behind, "select count(*) from runtime.jobs where state = 'running'")) == 0


# Planted and seen to fail here: a run that is ended whoever has it by now (`fenced=False`).


@pytest.mark.fault
async def test_every_slot_has_its_effect_once_whoever_is_killed_or_stopped(clone: str) -> None:
    # R6
    async with crew(clone, 2, pace=QUICK, seconds=0.1) as made:
        slots = await fill(made.owner, 15)
        assert slots == 60
        hit = [await made.kill(), await made.stop(), await made.kill(), await made.kill()]
        await through(made.owner, seconds=120)
        assert hit == [True] * 4
        assert await counts(made.owner) == (60, 60, 60)
        assert len(await made.watched()) == 4, "each was taken over"


@pytest.mark.fault
async def test_who_is_told_to_go_leaves_nothing_running(clone: str) -> None:
    # R12
    async with crew(clone, 2, pace=QUICK, seconds=0.2) as made:
        slots = await fill(made.owner, 30)
        await made.all_busy()
        for process in made.processes:
            process.send_signal(signal.SIGTERM)
        for process in made.processes:
            assert await asyncio.to_thread(process.wait, 60) == 0
        running = await made.owner.fetchval("select count(*) from runtime.jobs where state = 'running'")
        done, had, effects = await counts(made.owner)
        assert running == 0 and done == had == effects and 0 < done < slots
