"""Three workers at their usual pace, 1,000 slots, 25 kills and 10 that are stopped past their leases.

The small one of tests/system fails when runs are ended whoever has them (`fenced=False`).
"""

import asyncio
import random
import signal
import sys
import time

import pytest

from newton.runtime.jobs.worker import WorkerTimings
from tests.claimants import NAMES, counts, crew, fill, through

KILLS, STOPS, AGENTS, SLOTS = 25, 10, 50, 5
AT_ONCE = 9  # blows while one slot of each is done, of 7 that there are on average
USUAL = WorkerTimings()


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_every_slot_of_a_thousand_has_its_effect_once(clone: str) -> None:
    # R6, R2
    began = time.monotonic()
    async with crew(clone, 3, pace=USUAL, seconds=1.0) as made:
        blows = [made.kill] * KILLS + [made.stop] * STOPS
        random.Random(6).shuffle(blows)
        for slot in range(SLOTS):
            await fill(made.owner, AGENTS, slot=slot)
            for _ in range(AT_ONCE):
                if not blows or not await blows[-1]():
                    break  # all is done already: it lands among the next ones
                blows.pop()
                await asyncio.sleep(1)
            await through(made.owner, seconds=300)
        done, had, effects = await counts(made.owner)
        dead = await made.owner.fetchval("select count(*) from runtime.jobs where state = 'dead'")
        epochs = await made.owner.fetchval("select count(*) from runtime.jobs where epoch > 1")
        late = await made.watched()
    sys.stdout.write(
        f"\n{done} slots, {effects} effects, {epochs} taken over, {KILLS + STOPS - len(blows)} blows landed, "
        f"takeover p50 {late[len(late) // 2]:.1f} s, most {late[-1]:.1f} s, {time.monotonic() - began:.0f} s in all\n"
    )
    assert not blows
    assert (done, had, effects, dead) == (1_000, 1_000, 1_000, 0)
    assert done == AGENTS * SLOTS * len(NAMES)
    assert epochs  # runs of killed workers were taken over


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_thirty_who_are_told_to_go_leave_nothing_running(clone: str) -> None:
    # R12
    slowest = 0.0
    async with crew(clone, 2, pace=WorkerTimings(drain=1), seconds=1.0) as made:
        for slot in range(15):
            await fill(made.owner, 5, slot=slot)
            await made.all_busy()
            gone, made.processes[:] = list(made.processes), []
            began = time.monotonic()
            for process in gone:
                process.send_signal(signal.SIGTERM)
            for process in gone:
                assert await asyncio.to_thread(process.wait, 120) == 0
            slowest = max(slowest, time.monotonic() - began)
            assert await made.owner.fetchval("select count(*) from runtime.jobs where state = 'running'") == 0
            await made.owner.execute("delete from runtime.jobs where state = 'queued'")
            for _ in gone:
                made.start()
        done, had, effects = await counts(made.owner)
    sys.stdout.write(f"\n{done} ended, the slowest to go took {slowest:.1f} s\n")
    assert done == had == effects > 0
