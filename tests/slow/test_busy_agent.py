"""Another agent's contexts while one token asks for as many large ones as it can."""

import asyncio
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from newton.db.pool import Database
from tests.system.served import served

LARGE = " ".join(f"word{n % 3000} is said," for n in range(50_000))  # about 920 KB
MANY = 24
TRIES = 15


@pytest.mark.slow
async def test_large_contexts_of_one_token_delay_those_of_another_agent_by_three_times_at_most(
    db: Database, tmp_path: Path
) -> None:
    # R11
    async with served(db, tmp_path) as api:
        busy, other = await api.token("ana", "read"), await api.token("ben", "read")
        async with api.http(busy) as ana, api.http(other) as ben:

            async def measure() -> float:
                started = perf_counter()
                answer = await ben.post("/v1/context", json={"input": f"Where does Ana live? {started}"})
                assert answer.status_code == 200
                return perf_counter() - started

            await measure()
            alone = [await measure() for _ in range(TRIES)]
            loads = [
                asyncio.create_task(ana.post("/v1/context", json={"input": f"{LARGE}{n}"}, timeout=300))
                for n in range(MANY)
            ]
            beside = [await measure() for _ in range(TRIES)]
            answered = [one.status_code for one in await asyncio.gather(*loads)]
    assert median(beside) <= 3 * median(alone), (alone, beside)
    assert answered.count(200) >= 1 and set(answered) <= {200, 429}
