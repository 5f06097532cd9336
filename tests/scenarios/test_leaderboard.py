"""The leaderboard on a small made-up data set: every system, receipts that are checked, and runs that continue."""

import json
import venv
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bench.leaderboard.command import run_benchmark
from bench.leaderboard.measurement import LeaderboardRun
from bench.leaderboard.public_sets import DatasetSelection, LoadedDataset, load_datasets
from bench.leaderboard.receipt_check import compare_receipts
from bench.leaderboard.receipts import ContextReceipt, ReceiptStore
from bench.leaderboard.rival_process import INSTALL_COMMANDS, RivalProcess, find_interpreter, run_rivals
from bench.leaderboard.systems import MeasuredSystem, NewtonSystem, RivalSystem, list_baselines, list_rivals
from newton.errors import InputError
from newton.providers import token_counter
from newton.providers.fakes import HashEmbedder
from tests.scenarios.conftest import Mind, newton
from tests.unit.source_trees import ROOT

BUDGETS = (60, 400)
TOPICS = ("harbour", "violin", "bakery", "glacier", "orchard", "lighthouse")
REAL_RIVALS = ROOT / ".venv-rivals"

# Programs with the interface of the two libraries, of which only the vectors' order matters here.
LANGGRAPH = """
class Item:
    def __init__(self, key): self.key = key
class InMemoryStore:
    def __init__(self, index): self.embed, self.rows = index["embed"], {}
    def put(self, namespace, key, value): self.rows[key] = self.embed([value["text"]])[0]
    def search(self, namespace, query, limit=10):
        (asked,) = self.embed([query])
        score = lambda key: -sum(a * b for a, b in zip(asked, self.rows[key]))
        return [Item(key) for key in sorted(self.rows, key=score)[:limit]]
"""
MEM0 = """
from langgraph.store.memory import InMemoryStore
class Client:
    def close(self): pass
class Store:
    client = Client()
    def keyword_search(self, query, top_k, filters): return None
class Memory:
    vector_store = Store()
    @classmethod
    def from_config(cls, config): return cls()
    def add(self, messages, user_id, metadata, infer):
        assert infer is False
        if not hasattr(self, "store"):
            self.store = InMemoryStore({"embed": lambda texts: [self.embedding_model.embed(t) for t in texts]})
        self.store.put((), str(metadata["number"]), {"text": messages[0]["content"]})
    def search(self, query, filters, top_k=20, threshold=0.1):
        print("a library may print")
        found = self.store.search((), query=query, limit=top_k)
        return {"results": [{"metadata": {"number": int(item.key)}} for item in found]}
"""


@pytest.fixture(scope="module")
def rivals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without pip with both libraries."""
    folder = tmp_path_factory.mktemp("rivals")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    files = {
        "langgraph/store/memory.py": LANGGRAPH,
        "mem0/__init__.py": MEM0,
        "mem0/embeddings/base.py": "class EmbeddingBase: pass\n",
        "langgraph-9.1.dist-info/METADATA": "Name: langgraph\nVersion: 9.1\n",
        "mem0ai-9.2.dist-info/METADATA": "Name: mem0ai\nVersion: 9.2\n",
    }
    for name, text in files.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two conversations of a made-up set; LoCoMo and BEAM are missing."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "tiny").mkdir()
    for name in ("one", "two"):
        messages = [
            {
                "type": "message",
                "session": "s1",
                "ref": f"{name}-{number}",
                "role": "user",
                "name": "Ana",
                "content": f"On day {number} Ana painted the {topic} of {name} in {'green' if number % 2 else 'red'}.",
                "at": f"2026-03-0{number + 1}T10:00:00+00:00",
            }
            for number, topic in enumerate(TOPICS)
        ]
        questions = [
            {"id": f"{name}-q{n}", "text": f"What of the {topic}?", "type": kind, "gold": [f"{name}-{n}"]}
            for n, (topic, kind) in enumerate(zip(TOPICS[:3], ("point", "point", "list"), strict=True))
        ]
        for suffix, rows in (("ndjson", messages), ("queries.jsonl", questions)):
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (folder / "tiny" / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return folder


@dataclass
class Bench:
    """A run on the made-up set, with the notices of its progress."""

    run: LeaderboardRun
    loaded: LoadedDataset
    systems: list[MeasuredSystem]
    notices: list[str] = field(default_factory=list[str])

    async def measure(self, run: LeaderboardRun | None = None) -> list[str]:
        """Measure all systems on all conversations; return the notices of this time."""
        self.notices.clear()
        used = run or self.run
        for conversation in self.loaded.conversations:
            texts = used.read_texts(conversation)
            for system in self.systems:
                await used.measure("tiny", system, texts)
        return [*self.notices]


@pytest.fixture
async def process(rivals: Path) -> AsyncGenerator[RivalProcess]:
    async with run_rivals(find_interpreter(rivals)) as started:
        yield started


@pytest.fixture
async def bench(mind: Mind, data: Path, process: RivalProcess, tmp_path: Path) -> Bench:
    services = newton(mind, HashEmbedder())
    (loaded,), _ = load_datasets(data, DatasetSelection())
    installed, missing = await list_rivals(process)
    assert not missing
    notices = list[str]()
    run = LeaderboardRun(
        store=ReceiptStore(tmp_path / "board" / "receipts"),
        scope=services.scope,
        embedder=HashEmbedder(),
        budgets=BUDGETS,
        machine={"cpu": "made up"},
        report_progress=notices.append,
    )
    return Bench(run, loaded, [NewtonSystem(services), *list_baselines(), *installed], notices)


def receipts_of(bench: Bench) -> Iterator[tuple[str, ContextReceipt]]:
    for system in bench.systems:
        for conversation in bench.loaded.conversations:
            stored = bench.run.store.read("tiny", system.key, conversation)
            assert stored and stored.header.machine == {"cpu": "made up"}
            yield from ((system.key, receipt) for receipt in stored.receipts)


async def test_every_system_is_measured_and_stands_on_the_page(bench: Bench, data: Path, tmp_path: Path) -> None:
    # S020: figures by budget and type, receipts, and the same for baselines and other libraries
    await bench.measure()
    receipts = list(receipts_of(bench))
    assert all(receipt.tokens <= receipt.budget for _, receipt in receipts)
    roomy = {key for key, one in receipts if one.budget == 400 and one.variant == "full" and one.evidence == 1.0}
    assert roomy == {"newton", "bm25", "vectors", "fusion", "mem0", "langgraph"}
    assert {one.variant for key, one in receipts if key == "mem0"} == {"full", "full-short", "default"}
    await run_benchmark(data, tmp_path / "board", budget=list(BUDGETS), measure=False)
    page = (tmp_path / "board" / "leaderboard.md").read_text(encoding="utf-8")
    figures = json.loads((tmp_path / "board" / "leaderboard.json").read_text(encoding="utf-8"))
    assert all(title in page for title in ("Newton", "BM25", "Reciprocal rank fusion", "mem0", "LangGraph"))
    assert "9.2 (vectors only" in page and "LoCoMo is missing: get it from" in page and "point (4)" in page
    (split,) = figures["results"]
    assert split["split"] == "unknown" and split["questions"] == 6
    row = next(row for row in split["rows"] if row["system"] == "bm25")
    low, high = row["budgets"]["60"]["interval"]
    assert low <= row["budgets"]["60"]["evidence"] <= high


@pytest.mark.slow
async def test_a_run_that_was_interrupted_continues(bench: Bench) -> None:
    # S020: results by data set and system are kept and not computed again
    first = await bench.measure()
    assert len(first) == 12 and not any("kept" in line for line in first)
    bench.run.store.path("tiny", "bm25", "two").unlink()
    second = await bench.measure()
    assert [line for line in second if "kept" not in line] == [second[7]] and "two BM25" in second[7]
    other = await bench.measure(replace(bench.run, budgets=(60, 90)))
    assert not any("kept" in line for line in other)
    rival = next(system for system in bench.systems if isinstance(system, RivalSystem))
    rival.version = "10"
    assert sum("kept" not in line for line in await bench.measure(replace(bench.run, budgets=(60, 90)))) == 2


@pytest.mark.slow
async def test_a_wrong_receipt_is_seen(bench: Bench) -> None:
    # S020: receipts, so that a reader can ask one question again
    await bench.measure()
    selection = DatasetSelection(question="one-q1")
    (loaded,), _ = load_datasets(bench.loaded.conversations[0].path.parents[1], selection)
    (conversation,) = loaded.conversations
    compared = await compare_receipts(bench.run, "tiny", conversation, bench.systems)
    assert len(compared) == 2 * (2 + 3 * 2 + 2 * 3) and not any(one.differences for one in compared)
    path = bench.run.store.path("tiny", "vectors", "one")
    true = path.read_text(encoding="utf-8")

    def plant(**changed: object) -> None:
        lines = [json.loads(line) for line in true.splitlines()]
        for line in lines[1:]:
            if (line["question"], line["budget"], line["variant"]) == ("one-q1", 400, "full"):
                assert line["found"] == ["one-1"]
                line.update(changed)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    plant(found=[], missed=["one-1"])  # consistent with the data, but not what the context had
    again = await compare_receipts(bench.run, "tiny", conversation, bench.systems)
    assert [(one.system, one.differences) for one in again if one.differences] == [("Vectors", ["found", "missed"])]
    for changed in ({"found": ["one-1", "one-2"]}, {"missed": ["one-1"]}, {"type": "list"}, {"tokens": 401}):
        plant(**changed)
        with pytest.raises(InputError, match="one-q1 at 400 tokens contradicts the data"):
            await bench.measure()


async def test_what_is_missing_is_named_with_where_to_get_it(tmp_path: Path, data: Path, bench: Bench) -> None:
    # S020: a missing data set and a library that is not installed are named
    with pytest.raises(InputError, match=r"LoCoMo is missing: get it from https://github.com/snap-research/locomo"):
        load_datasets(tmp_path, DatasetSelection())
    with pytest.raises(InputError, match="no conversation for this selection"):
        load_datasets(data, DatasetSelection(splits=["held out"]))
    installed, missing = await list_rivals(None)
    assert not installed and sorted(missing.values()) == sorted(INSTALL_COMMANDS.values())
    with pytest.raises(InputError, match="is no Python environment"):
        find_interpreter(tmp_path)
    with pytest.raises(InputError, match="Unknown system: zep"):
        await run_benchmark(data, tmp_path, system=["zep"])


@pytest.mark.slow
@pytest.mark.skipif(not REAL_RIVALS.is_dir(), reason="requirements/rivals.txt is not installed in .venv-rivals")
async def test_the_libraries_themselves_find_a_text_by_its_words() -> None:
    embedder = HashEmbedder()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vector.tolist() for vector in await embedder.embed(texts)]

    async with run_rivals(find_interpreter(REAL_RIVALS)) as process:
        assert (await process.find_versions()).keys() == {"mem0", "langgraph"}
        for library in ("mem0", "langgraph", "mem0"):
            await process.index(library, TOPICS, embed=embed, dimensions=embedder.dimensions)
            ranking = await process.search("bakery", is_default=False, embed=embed)
            assert ranking[0] == TOPICS.index("bakery"), library
            assert token_counter.count(TOPICS[ranking[0]]) > 0
