"""The synchronous client, in processes of its own: exits, forks, interrupts, threads and streams that are left."""

import asyncio
import os
import sys
from pathlib import Path

from newton.db.pool import Database
from tests.system.client_package import ROOT, run
from tests.system.served import served

PROGRAMS = Path(__file__).with_name("sync_client_programs.py")
OUTPUTS = {
    "exit_with_all_open": "True\nana\n",
    "fork_with_all_open": (
        "ana\nNeither a finalizer nor a forked process can wait for this. Open a stream again there.\n0 True ana\n"
    ),
    "interrupt_calls": "interrupted ana\nall closed\n",
    "leave_streams": "all closed\n",
    "share_a_client": (
        "quay harbour mole pier wharf jetty dock slip\nana ana\nCannot send a request, as the client has been closed.\n"
    ),
    "fail_calls": (
        "missing a required argument: 'query'\nmissing a required argument: 'memory_id'\n"
        "not_found 1\ndaemon_unreachable 1\n"
    ),
}


async def test_programs_end_with_the_expected_output_and_write_nothing_while_they_exit(
    db: Database, tmp_path: Path
) -> None:
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        async with api.client(token) as client:
            for number in range(3):
                await client.remember(f"Ana has {number} cats.")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NEWTON_URL": api.url, "NEWTON_TOKEN": token}
        runs = (run(sys.executable, str(PROGRAMS), name, env=env) for name in OUTPUTS)
        found = dict(zip(OUTPUTS, await asyncio.gather(*runs), strict=True))
        assert found == OUTPUTS, found
