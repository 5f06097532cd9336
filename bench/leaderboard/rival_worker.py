"""Runs a memory library of another project in the Python of its own environment; imports no module of Newton.

Requests are read from standard input and answered on standard output, one JSON object per line. While a request runs,
the worker asks for the vectors of texts with {"embed": [texts]} and reads {"vectors": [...]}, so that every library has
the embedding model of the benchmark.
"""

import contextlib
import importlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, TextIO

USER, NAMESPACE = "reader", ("messages",)
Vectors = list[list[float]]
EmbedTexts = Callable[[Sequence[str]], Vectors]


class Mem0Library:
    """mem0 without extraction by an LLM (`infer=False`), with a local Qdrant store."""

    package = "mem0ai"

    def __init__(self, embed: EmbedTexts, dimensions: int) -> None:
        self._folder = tempfile.mkdtemp()
        store = {"collection_name": "bench", "path": f"{self._folder}/qdrant", "embedding_model_dims": dimensions}
        config = {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": f"{self._folder}/history.db",
        }
        self._memory: Any = importlib.import_module("mem0").Memory.from_config(config)
        base: Any = importlib.import_module("mem0.embeddings.base").EmbeddingBase

        class SharedEmbedding(base):  # type: ignore[misc]  # the class is known only at run time
            """The embedding model of the benchmark behind mem0's interface."""

            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                return embed([text])[0]

        self._memory.embedding_model = SharedEmbedding()
        self._count = 0

    def index(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        for number, text in enumerate(texts):
            message = [{"role": "user", "content": text}]
            self._memory.add(message, user_id=USER, metadata={"number": number}, infer=False)

    def search(self, question: str, *, is_default: bool) -> list[int]:
        limits: dict[str, Any] = {} if is_default else {"top_k": self._count, "threshold": 0.0}
        found = self._memory.search(question, filters={"user_id": USER}, **limits)
        return [one["metadata"]["number"] for one in found["results"]]

    def describe(self) -> str:
        """Return which searches were active: mem0 searches words only with a model that fastembed downloads."""
        has_words = self._memory.vector_store.keyword_search(query="a", top_k=1, filters={"user_id": USER}) is not None
        return "vectors and words" if has_words else "vectors only; the search of words needs fastembed and its model"

    def close(self) -> None:
        self._memory.vector_store.client.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class LangGraphLibrary:
    """The InMemoryStore of LangGraph with an index of vectors."""

    package = "langgraph"

    def __init__(self, embed: EmbedTexts, dimensions: int) -> None:
        module: Any = importlib.import_module("langgraph.store.memory")
        self._store = module.InMemoryStore(index={"dims": dimensions, "embed": embed, "fields": ["text"]})
        self._count = 0

    def index(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        for number, text in enumerate(texts):
            self._store.put(NAMESPACE, str(number), {"text": text})

    def search(self, question: str, *, is_default: bool) -> list[int]:
        limits = {} if is_default else {"limit": self._count}
        return [int(item.key) for item in self._store.search(NAMESPACE, query=question, **limits)]

    def describe(self) -> str:
        return "vectors only"

    def close(self) -> None:
        """Nothing is stored outside of the process."""


Library = Mem0Library | LangGraphLibrary
LIBRARIES: dict[str, type[Mem0Library] | type[LangGraphLibrary]] = {"mem0": Mem0Library, "langgraph": LangGraphLibrary}


def find_versions() -> dict[str, str]:
    """Return the versions of the installed libraries by name."""
    versions = dict[str, str]()
    for name, library in LIBRARIES.items():
        try:
            versions[name] = importlib.metadata.version(library.package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until the end of the input."""

    def send(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    def embed(texts: Sequence[str]) -> Vectors:
        send({"embed": list(texts)})
        vectors: Vectors = json.loads(requests.readline())["vectors"]
        return vectors

    library: Library | None = None
    with contextlib.ExitStack() as opened:
        for line in iter(requests.readline, ""):
            request = json.loads(line)
            if "versions" in request:
                send({"versions": find_versions()})
            elif "index" in request:
                opened.close()  # only one library is open
                library = LIBRARIES[request["library"]](embed, request["dimensions"])
                opened.callback(library.close)
                library.index(request["index"])
                send({"description": library.describe()})
            elif library:
                send({"ranking": library.search(request["search"], is_default=request["is_default"])})


def main() -> None:
    """Serve with an environment in which nothing is sent, downloaded, or stored beside the user's own files."""
    protocol = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # a library may print, and must not write between the replies
    with tempfile.TemporaryDirectory(prefix="newton-bench-rivals-") as folder:
        tempfile.tempdir = folder
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder, HF_HUB_OFFLINE="1", OPENAI_API_KEY="unused")
        serve(sys.stdin, protocol)


if __name__ == "__main__":
    main()
