"""The API under many cut replies, many agents, and many strange requests."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from newton.db.pool import Database
from newton.ids import derive_agent_id
from newton.runtime import daemon
from tests.endpoint import endpoint, says
from tests.support import until
from tests.system.cutting import cutting
from tests.system.fuzzing import fuzz
from tests.system.served import each_once, effects, served
from tests.system.strangers import Street, at_once, echo

pytestmark = pytest.mark.fault


async def test_a_thousand_replies_that_were_cut_are_one_effect_each(db: Database, tmp_path: Path) -> None:
    # R4
    async with served(db, tmp_path) as api, cutting(api.url) as (url, proxy):
        async with api.client(await api.token("ana"), url=url) as client:
            await each_once(client, 999)
        assert len(proxy.cut) == 999
        assert await effects(api) == [333, 333, 333, 999]


@pytest.mark.timeout(1_800)
async def test_fifty_agents_see_nothing_of_each_other_at_any_door(
    db: Database, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S1, S9
    monkeypatch.setattr(daemon, "REQUEST_HEAD_SECONDS", 120)  # the clients wait for their turn in the same loop
    (tmp_path / "newton.toml").write_text(f'database_url = "{dsn}"\n', encoding="utf-8")
    street = Street()
    async with (
        endpoint(echo(street)) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        await at_once(api, street, agents=50, calls=40, commands=tmp_path)
    sys.stdout.write(f"\nanswered {street.answered}, refused {street.refused}, prompts {len(model.asked)}\n")
    assert street.faults == []
    assert street.answered.total() - street.answered["events"] == 2_052


@pytest.mark.timeout(1_800)
async def test_no_request_of_many_makes_it_fail(db: Database, tmp_path: Path) -> None:
    # S2
    async with (
        endpoint(says(["Fine."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        assert await asyncio.to_thread(fuzz, api.url, await api.token("ana"), examples=40) > 1_000


FLOOD = """
insert into runtime.events (agent_id, number, type, occurred_at, payload)
select $1, n, 'memory.remembered', now(), jsonb_build_object('filling', repeat('x', 300))
from generate_series(1, 60000) as n
"""


async def test_who_listens_and_reads_nothing_is_dropped(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R13
    monkeypatch.setattr(daemon, "STALLED_READER_SECONDS", 0.5)
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        async with db.transaction(derive_agent_id("ana")) as tx:
            await tx.execute(FLOOD, derive_agent_id("ana"))
        listeners = [socket.socket() for _ in range(8)]
        shown = f"Authorization: Bearer {token}"
        head = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{shown}\r\nLast-Event-ID: 0\r\n\r\n"
        for one in listeners:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", int(api.url.rpartition(":")[2])))
            one.send(head.encode())

        async def at_work(many: int) -> bool:
            return api.app.state.metrics.in_flight._value.get() == many

        await until(lambda: at_work(8), seconds=30)
        await until(lambda: at_work(0), seconds=60)
        for one in listeners:
            one.close()
        assert await at_work(0)
