"""The systems of the leaderboard behind one interface: Newton, plain rankings and libraries of other projects."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from bench.dataset import DatasetConversation
from bench.leaderboard.conversation_texts import ConversationTexts
from bench.leaderboard.filled_context import RankedLine, fill_context, join_lines
from bench.leaderboard.rankers import Bm25Index, Ranking, fuse_rankings, rank_scores
from bench.leaderboard.rival_process import INSTALL_COMMANDS, RivalProcess
from bench.recall import ask_after_end, build_context, create_conversation_agent, select_rendered_items
from bench.scoring import ScoredItem
from newton import __version__
from newton.clock import monotonic_ms
from newton.errors import ProviderError
from newton.runtime.transfer.import_source import read_file
from newton.runtime.wiring import AgentServices

FULL, FULL_SHORT, DEFAULT = "full", "full-short", "default"
VARIANT_TITLES: Mapping[str, str] = {
    FULL: "",
    FULL_SHORT: ", long messages shortened",
    DEFAULT: ", default selection",
}
BASELINE_TITLES: Mapping[str, str] = {"bm25": "BM25", "vectors": "Vectors", "fusion": "Reciprocal rank fusion"}
RIVAL_TITLES: Mapping[str, str] = {"mem0": "mem0", "langgraph": "LangGraph InMemoryStore"}
SYSTEM_TITLES: Mapping[str, str] = {"newton": "Newton", **BASELINE_TITLES, **RIVAL_TITLES}
# the id of a memory that is cut, which is random: the text without it is the same in every run
_ITEM_ID = re.compile(r"(?m)^- #\d{9} ")


class BuiltContext(NamedTuple):
    """A context of a system, with the milliseconds that search and selection took."""

    variant: str
    budget: int
    items: Sequence[ScoredItem]
    text: str
    ms: float
    is_complete: bool | None = None

    @property
    def stable_text(self) -> str:
        """Return the text without ids that differ between runs."""
        return _ITEM_ID.sub("- ", self.text)


AskQuestion: TypeAlias = Callable[[str, Sequence[int]], Awaitable[list[BuiltContext]]]
RankQuestion: TypeAlias = Callable[[str, str], Awaitable[Ranking]]


class MeasuredSystem(Protocol):
    """A system that builds contexts for the questions of a conversation.

    `version` is part of the fingerprint of its results, `description` a note for the page after a conversation was
    opened.
    """

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def description(self) -> str: ...

    def open(self, texts: ConversationTexts) -> AbstractAsyncContextManager[AskQuestion]:
        """Store the messages of a conversation, and yield the function that answers with contexts."""
        ...


@dataclass(frozen=True, slots=True)
class NewtonSystem:
    """Newton, with `fill` and with its default selection. Each conversation has an agent of its own."""

    newton: AgentServices
    key: str = "newton"
    title: str = "Newton"
    version: str = __version__
    description: str = ""

    @asynccontextmanager
    async def open(self, texts: ConversationTexts) -> AsyncGenerator[AskQuestion]:
        own = await self._import(texts.conversation)

        async def ask(question: str, budgets: Sequence[int]) -> list[BuiltContext]:
            built = list[BuiltContext]()
            for (variant, fill), budget in product(((FULL, True), (DEFAULT, False)), budgets):
                bundle, ms = await build_context(own, question, budget=budget, fill=fill)
                items = select_rendered_items(bundle)
                built.append(BuiltContext(variant, budget, items, bundle.text, ms, is_complete=not bundle.missing))
            return built

        yield ask

    async def _import(self, conversation: DatasetConversation) -> AgentServices:
        own = await create_conversation_agent(self.newton, conversation)
        report = await own.importer().run(read_file(conversation.path), progress=lambda _: None)
        if report.embedder_error:
            raise ProviderError(report.embedder_error, hint="Fix the cause, or use NEWTON_EMBEDDING_PROVIDER=none.")
        return ask_after_end(own, conversation)


@dataclass(frozen=True, slots=True)
class RankingSystem:
    """A plain ranking of the messages: `bm25`, `vectors` or `fusion` of both."""

    key: str
    title: str
    description: str = ""
    version: str = "1"

    @asynccontextmanager
    async def open(self, texts: ConversationTexts) -> AsyncGenerator[AskQuestion]:
        stems = await texts.stem() if self.key != "vectors" else {}
        index = Bm25Index([stems[line] for line in texts.lines]) if stems else None
        matrix = np.array(await texts.embed_lines()) if self.key != "bm25" else None

        async def rank(question: str, variant: str) -> Ranking:
            rankings = list[Ranking]()
            if index is not None:
                rankings.append(rank_scores(index.score(stems[question])))
            if matrix is not None:
                (vector,) = await texts.embedder.embed([question])
                rankings.append(rank_scores(matrix @ vector))
            return fuse_rankings(rankings) if len(rankings) > 1 else rankings[0]

        yield partial(_fill_rankings, texts, rank, (FULL, FULL_SHORT))


@dataclass(slots=True)
class RivalSystem:
    """A library of another project, which runs in a process of its own environment."""

    key: str
    title: str
    version: str
    process: RivalProcess
    description: str = ""

    @asynccontextmanager
    async def open(self, texts: ConversationTexts) -> AsyncGenerator[AskQuestion]:
        await texts.embed_lines()  # at once, because a library may ask for one after the other
        self.description = await self.process.index(
            self.key, texts.lines, embed=texts.embed, dimensions=texts.embedder.dimensions
        )

        async def rank(question: str, variant: str) -> Ranking:
            return await self.process.search(question, is_default=variant == DEFAULT, embed=texts.embed)

        yield partial(_fill_rankings, texts, rank, (FULL, FULL_SHORT, DEFAULT))


async def _fill_rankings(
    texts: ConversationTexts, rank: RankQuestion, variants: Sequence[str], question: str, budgets: Sequence[int]
) -> list[BuiltContext]:
    """Rank the messages once for each variant, and fill a context of each size."""
    built = list[BuiltContext]()
    for variant in variants:
        started = monotonic_ms()
        ranking = await rank(question, variant)
        rank_ms, lines = monotonic_ms() - started, texts.rendered["short" if variant == FULL_SHORT else "whole"]
        built += [_fill(lines, ranking, variant, budget, rank_ms) for budget in budgets]
    return built


def _fill(lines: Sequence[RankedLine], ranking: Ranking, variant: str, budget: int, rank_ms: float) -> BuiltContext:
    started = monotonic_ms()
    chosen = fill_context(lines, ranking, budget)
    text = join_lines(chosen)
    return BuiltContext(variant, budget, chosen, text, rank_ms + monotonic_ms() - started)


def list_baselines() -> list[RankingSystem]:
    """Return the plain rankings."""
    return [RankingSystem(key, title) for key, title in BASELINE_TITLES.items()]


async def list_rivals(process: RivalProcess | None) -> tuple[list[RivalSystem], dict[str, str]]:
    """Return the libraries that the environment of `process` has, and the pip command of each that it lacks."""
    versions = await process.find_versions() if process else {}
    rivals = [
        RivalSystem(key, title, versions[key], process)
        for key, title in RIVAL_TITLES.items()
        if process and key in versions
    ]
    return rivals, {RIVAL_TITLES[key]: command for key, command in INSTALL_COMMANDS.items() if key not in versions}
