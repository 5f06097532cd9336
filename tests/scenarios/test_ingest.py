"""Documents and procedures in files: what is read from a folder, and what becomes of a file that changes or goes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from newton.agent.services.ingest import IngestService
from newton.agent.services.memories import FactDraft
from newton.agent.services.procedures import ProcedureService
from newton.cognition.assembly.render import render_header
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.content.skills import load_skills
from newton.memory.vectors import RUN_TO_THE_END, DrainControl, DrainResult, read_backlog
from newton.providers import token_counter
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder
from newton.runtime.tools.tool_registry import run_tool
from tests.scenarios.conftest import Mind, newton

FILES = 12
QUESTION = "Which crane lifts lorries at the pier?"


@dataclass
class CountingEmbedder(HashEmbedder):
    """It counts the texts of which it computes vectors."""

    texts: list[str] = field(default_factory=list[str])

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return await super().embed(texts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        words = f"Pier {number} has a crane that lifts lorries. " * 30
        (tmp_path / f"pier{number:02}.txt").write_text(words, encoding="utf-8")
    return tmp_path


async def stopped_after(mind: Mind, folder: Path, *, files: int) -> tuple[IngestService, Path | None, int]:
    service, stop, done = IngestService(scope=mind.scope.at("ingest")), asyncio.Event(), list[Path]()

    def advance(path: Path) -> None:
        done.append(path)
        if len(done) == files:
            stop.set()

    found = await service.find_documents(folder)
    report = await service.ingest(found.documents, trust="user", progress=advance, stop=stop)
    return service, report.stopped_at, report.documents


async def embed_all(mind: Mind, control: DrainControl = RUN_TO_THE_END) -> DrainResult:
    maintenance = newton(mind, HashEmbedder()).maintenance("job embed")
    return await maintenance.process_pending(limit=None, passages=True, control=control)


async def test_a_stopped_ingestion_keeps_what_is_stored_and_the_next_one_continues(mind: Mind, folder: Path) -> None:
    service, stopped_at, documents = await stopped_after(mind, folder, files=5)
    assert (stopped_at, documents) == (folder / "pier05.txt", 5)
    assert len(await service.list_documents()) == 5
    found = await service.find_documents(folder)
    report = await service.ingest(found.documents, trust="user")
    assert (report.documents, report.unread, report.stopped_at) == (FILES, 5, None)
    assert len(await service.list_documents()) == FILES


async def test_a_document_that_is_being_read_is_left_out_when_it_is_stopped(mind: Mind, tmp_path: Path) -> None:
    (tmp_path / "endless.txt").write_text("word " * 400_000, encoding="utf-8")
    service, stop = IngestService(scope=mind.scope.at("ingest")), asyncio.Event()
    reading = asyncio.create_task(service.ingest([tmp_path / "endless.txt"], trust="user", stop=stop))
    await asyncio.sleep(0.2)
    stop.set()
    report = await reading
    assert report.stopped_at == tmp_path / "endless.txt" and not await service.list_documents()


async def test_what_is_remembered_after_a_stopped_ingestion_does_not_wait_for_its_vectors(
    mind: Mind, folder: Path
) -> None:
    embedder = CountingEmbedder()
    mind = replace(mind, embedder=embedder)
    await stopped_after(mind, folder, files=8)
    async with mind.db.transaction(mind.agent_id) as tx:
        waiting = (await read_backlog(tx, agent_id=mind.agent_id)).waiting
    assert waiting > 8 and embedder.texts == []
    services = newton(mind, embedder)
    await services.memories("cli").remember(FactDraft(content="The ferry is called Artemis."))
    await services.maintenance("cli").process_pending()
    assert len(embedder.texts) < 4 and not [text for text in embedder.texts if "crane" in text]
    drained = await services.maintenance("job embed").process_pending(limit=None, passages=True)
    assert drained.embedded == waiting, "the job does the rest"
    assert len([text for text in embedder.texts if "crane" in text]) > waiting, "with their windows"


async def test_the_embedding_of_passages_can_be_stopped_between_batches(mind: Mind, folder: Path) -> None:
    await stopped_after(mind, folder, files=FILES)
    seen = list[int]()
    control = DrainControl(batch=4, on_progress=seen.append, is_stopped=lambda: sum(seen) == 8)
    drained = (
        await newton(mind, mind.embedder).maintenance("job").process_pending(limit=None, passages=True, control=control)
    )
    assert (drained.embedded, drained.stopped_by, [n for n in seen if n]) == (8, "it was stopped", [4, 4])


async def test_a_context_shows_the_source_and_position_of_a_passage(mind: Mind, tmp_path: Path) -> None:
    # S004-13
    (tmp_path / "winch.py").write_text(
        "import math\n\n\ndef haul(rope):\n    '''Haul the rope of the winch with all force.'''\n    return math.pi\n",
        encoding="utf-8",
    )
    service = IngestService(scope=mind.scope.at("ingest"))
    await service.ingest([tmp_path / "winch.py"], trust="user")
    await embed_all(mind)
    bundle = await mind.context("How is the rope of the winch hauled with force?", fill=True)
    assert render_header("documents") + "- " in bundle.text
    assert "[winch.py, haul, lines 1-6] import math" in bundle.text
    assert bundle.tokens == token_counter.count(bundle.text)


@pytest.mark.slow
async def test_passages_have_a_total_of_their_own_which_more_of_them_never_exceed(mind: Mind, folder: Path) -> None:
    # S004-10, S004-12, S004-13, S004-19
    await stopped_after(mind, folder, files=FILES)
    await embed_all(mind)
    costs = dict[tuple[int, int], list[int]]()
    for total in (0, 200, 450, 700, 1_000, 2_000):
        for top_k in range(6):
            policy = ArtifactPolicy(max_selected=top_k, max_passage_tokens=total)
            request = ContextBuildRequest(agent_id=mind.agent_id, input=QUESTION, tokens=8_000, fill=True)
            bundle = await replace(mind.contexts, artifact_policy=policy).build(request)
            shown = [item.tokens for item in bundle.items if item.kind == "passage"]
            used = bundle.layers["documents"].used if "documents" in bundle.layers else 0
            assert len(shown) <= top_k and used <= total, (total, top_k)
            assert bundle.tokens == token_counter.count(bundle.text)
            costs[total, top_k] = shown
    for total in (0, 200, 450, 700, 1_000, 2_000):
        by_number = [costs[total, top_k] for top_k in range(6)]
        assert all(sum(fewer) <= sum(more) and more[: len(fewer)] == fewer for fewer, more in pairwise(by_number))
    assert len(costs[2_000, 5]) == 5 and costs[0, 5] == []


async def test_a_model_stores_reads_and_deletes_a_document(mind: Mind) -> None:
    services = newton(mind, HashEmbedder())
    text = "# Winch\n\nHaul the rope of the winch.\n"
    stored = await run_tool(services, "ingest_document", {"name": "winch.md", "content": text, "source": "own"})
    assert not stored.is_error and (stored.fields["document"], stored.fields["new"]) == ("winch.md", 1)
    found = await run_tool(services, "recall", {"query": "rope of the winch"})
    assert "[Winch, line 3] Haul the rope" in str(found.fields)
    listed = await run_tool(services, "documents", {})
    assert "'title': 'Winch'" in str(listed.fields)
    read = await run_tool(services, "document", {"document_id": "winch.md"})
    assert "'location': 'line 3'" in str(read.fields)
    planned = (await run_tool(services, "delete_document", {"document_id": "winch.md"})).fields
    deleted = await run_tool(services, "delete_document", {"document_id": "winch.md", "token": planned["token"]})
    assert (planned["passages"], len(cast("list[object]", deleted.fields["items"]))) == (1, 1)
    gone = await run_tool(services, "document", {"document_id": "winch.md"})
    assert gone.is_error
    await run_tool(services, "ingest_document", {"name": "of a tool.md", "content": "Haul the rope of the winch."})
    found = await run_tool(services, "recall", {"query": "rope of the winch"})
    assert "Haul" not in str(found.fields), "what a tool gave is in quarantine"


SHIPPED = "incident-response"
SKILL = "---\nname: {name}\ndescription: Mend it.\n---\n1. {step}\n"


def write(folder: Path, name: str, step: str, inner: str | None = None) -> Path:
    path = folder / (inner or name) / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SKILL.format(name=name, step=step), encoding="utf-8")
    return path


async def start(mind: Mind, folder: Path) -> dict[str, tuple[int, str]]:
    """Return the latest version of each procedure and its first step, after the folder was read."""
    service = ProcedureService(scope=mind.scope)
    await service.sync_from_disk(load_skills(folder))
    return {one.name: (one.version, one.steps[0]) for one in await service.list_procedures() if one.state == "ACTIVE"}


@pytest.mark.parametrize("broken", ["no front matter", "---\nname: incident-response\ndescription: [\n---\n"])
async def test_a_skill_in_place_of_a_shipped_one_stays_while_its_file_is_broken(
    mind: Mind, tmp_path: Path, broken: str
) -> None:
    path = write(tmp_path, SHIPPED, "Call Ana.")
    assert (await start(mind, tmp_path))[SHIPPED] == (1, "Call Ana.")
    path.write_text(broken, encoding="utf-8")
    write(tmp_path, "cut-wood", "Saw.")
    procedures = await start(mind, tmp_path)
    assert (procedures[SHIPPED], procedures["cut-wood"]) == ((1, "Call Ana."), (1, "Saw."))
    write(tmp_path, SHIPPED, "Call Ben.")
    assert (await start(mind, tmp_path))[SHIPPED] == (2, "Call Ben.")


async def test_two_files_with_one_name_cost_only_the_second(mind: Mind, tmp_path: Path) -> None:
    write(tmp_path, "cut-wood", "Saw.")
    write(tmp_path, "cut-wood", "Split.", inner="twin")
    assert (await start(mind, tmp_path))["cut-wood"] == (1, "Saw.")
    write(tmp_path, "mend-a-tap", "Look.")
    write(tmp_path, "cut-wood", "Saw slowly.")
    procedures = await start(mind, tmp_path)
    assert (procedures["cut-wood"], procedures["mend-a-tap"]) == ((2, "Saw slowly."), (1, "Look."))
