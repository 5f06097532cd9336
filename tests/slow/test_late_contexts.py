"""Contexts and turns of a large memory at once, while another process takes a core: complete, refused or named."""

import asyncio
import json
import sys
from pathlib import Path

import httpx2
import pytest

from bench.synthetic_dialogue import generate_dialogue
from newton.db.pool import Database
from newton.ids import derive_agent_id
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from newton.runtime.transfer.import_source import read_file
from tests.system.lines import importer
from tests.system.served import served

MEMORIES, AT_ONCE = 8_800, 12
UNSEARCHED = "Not searched for this input"


@pytest.mark.slow
async def test_many_at_once_on_a_busy_machine_are_complete_or_refused(db: Database, tmp_path: Path) -> None:
    dialogue = generate_dialogue(MEMORIES, 4 * AT_ONCE, seed=7)
    questions = iter(dialogue.questions)
    lines = tmp_path / "lines.ndjson"
    lines.write_text("\n".join(dialogue.lines), encoding="utf-8")
    async with served(db, tmp_path, quote_without_model=True) as api:
        token, agent = await api.token("ana"), derive_agent_id("ana")
        await importer(db, agent, outbox=EmbeddingOutbox(db, HashEmbedder(), agent)).run(read_file(lines))
        burner = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
        try:
            async with api.http(token) as http:
                contexts = await asyncio.gather(
                    *(http.post("/v1/context", json={"input": next(questions)}) for _ in range(2 * AT_ONCE))
                )
                turns = await asyncio.gather(*(run_turn(http, n, next(questions)) for n in range(AT_ONCE)))
        finally:
            burner.kill()
            await burner.wait()
    refused = [one for one in contexts if one.status_code in (429, 503)]
    assert all("retry-after" in one.headers for one in refused)
    assert len(contexts) - len(refused) >= AT_ONCE
    for answer in (one.json() for one in contexts if one not in refused):
        assert answer["items"] and not answer["nothing_relevant"] and not answer["missing"]
    for context in turns:
        assert not context["missing"] or UNSEARCHED in json.dumps(context)


async def run_turn(http: httpx2.AsyncClient, number: int, question: str) -> dict[str, object]:
    """The context with which a turn in a session of its own was answered."""
    answer = await http.post(f"/v1/sessions/s{number}/turns", json={"input": question, "include_context": True})
    assert answer.status_code == 200
    result = json.loads(answer.text.partition("event: result\ndata: ")[2].partition("\n")[0])
    return result["context_summary"] | {"text": answer.text}
