"""Workers that are killed, stopped and told to go: every slot has its effect, and has it once."""

import asyncio
import signal

import pytest

from tests.claimants import QUICK, counts, crew, fill, through

pytestmark = pytest.mark.fault

# Planted and seen to fail here: a run that is ended whoever has it by now (`fenced=False`).


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
