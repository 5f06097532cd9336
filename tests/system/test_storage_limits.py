"""What an agent may store, and what happens when the disk is full."""

import pytest

from newton.agent.storage_quota import StorageQuota
from newton.db.pool import Database, Tx
from newton.errors import DiskFullError, StorageQuotaError
from newton.runtime.jobs.queue import ClaimedRun
from newton.runtime.jobs.worker import JobWorker
from tests.support import ANA, BEN, NOON, agent_scope
from tests.system.served import Api

FULL_DISK = "do $$ begin raise exception using errcode = '53100', message = 'could not extend file'; end $$"


async def test_an_agent_that_reaches_its_quota_is_refused_with_a_hint_and_may_still_read_and_forget(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R11
    token, other = await api.token("ana", "admin"), await api.token("ben", "write")
    owner = await api.app.state.agents.get("ana")
    object.__setattr__(owner.scope, "storage", StorageQuota(max_bytes=20_000))
    async with api.http(token) as ana, api.http(other) as ben:
        first = await ana.post("/v1/memories", json={"content": "The ferry leaves at nine."})
        ways = {
            "/v1/memories": {"content": "x" * 19_999},
            "/v1/sessions/s/messages": {"messages": [{"role": "user", "content": "x" * 30_000}]},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "x" * 30_000}], "model": "newton"},
        }
        for path, body in ways.items():
            answer = await ana.post(path, json=body)
            assert answer.status_code == 507 and "NEWTON_MAX_STORAGE_MB" in answer.text, answer.text
            assert (await ben.post(path, json=body)).status_code != 507
        assert (await ana.post("/v1/context", json={"input": "When does the ferry leave?"})).status_code == 200
        path = f"/v1/memories/{first.json()['memory_id']}"
        forgotten = await ana.delete(path, params={"token": (await ana.delete(path)).json()["token"]})
        assert forgotten.status_code in (200, 204), forgotten.text


async def test_what_is_written_counts_and_is_measured_again(db: Database, agent: object) -> None:
    # R11
    quota = StorageQuota(max_bytes=1_000)
    await quota.reserve(db, ANA, 40)
    for _ in range(30):  # nothing of it was stored, as when it is a repeated request
        await quota.reserve(db, ANA, 40)
    with pytest.raises(StorageQuotaError):
        await quota.reserve(db, ANA, 1_001)
    await agent_scope(agent_id=BEN, db=db).reserve_storage("x" * 10_000)


async def fill(tx: Tx) -> None:
    await tx.execute(FULL_DISK)


async def test_on_a_full_disk_the_daemon_is_not_ready_and_says_why(
    api: Api, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R8
    async with api.http() as http:
        assert (await http.get("/health/ready")).status_code == 200
        with pytest.raises(DiskFullError, match="disk of the database is full"):
            async with db.transaction(ANA) as tx:
                await fill(tx)
        try:
            assert (await http.get("/health/ready")).status_code == 503
        finally:
            db._disk_full_ms = None  # pyright: ignore[reportPrivateUsage]  # nothing else fills a disk
        assert (await http.get("/health/ready")).status_code == 200
        monkeypatch.setattr("newton.runtime.agent_registry.MIN_FREE_BYTES", 2**62)
        assert (await http.get("/health/ready")).status_code == 503


async def test_a_job_that_the_database_fails_waits_longer_each_time(db: Database) -> None:
    # R8
    async def run(claimed: ClaimedRun) -> object:
        raise AssertionError

    worker = JobWorker(db, run)  # pyright: ignore[reportArgumentType]  # it is never run
    claimed = ClaimedRun(ANA, "ana", BEN, "embed", NOON, 1, worker.holder, 1)
    fail = worker._to_job_failure  # pyright: ignore[reportPrivateUsage]  # nothing else fills a disk
    failures = [fail(DiskFullError("Full.", hint="."), claimed) for _ in range(12)]
    assert all(not one.is_attempt for one in failures)
    seconds = [one.retry_after.total_seconds() for one in failures]
    assert seconds[0] <= 2 and seconds[4] >= 16 and seconds[-1] == 60
