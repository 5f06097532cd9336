"""Measures systems on conversations, and stores the receipts of each conversation before the next one begins."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.dataset import DatasetConversation, DatasetQuestion, hash_dataset
from bench.environment import measure_ms
from bench.leaderboard.conversation_texts import ConversationTexts
from bench.leaderboard.receipts import (
    ContextReceipt,
    ReceiptFile,
    ReceiptHeader,
    ReceiptStore,
    select_receipts,
)
from bench.leaderboard.systems import BuiltContext, MeasuredSystem, NewtonSystem
from bench.run_metadata import git_commit
from bench.scoring import is_in_context, is_verbatim_in_context
from newton.agent.scope import AgentScope
from newton.clock import SystemClock, monotonic_ms
from newton.providers import token_counter

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

ROOT = Path(__file__).parents[2]
# what cannot change a context: measurements, and interfaces that a benchmark does not use
_WITHOUT_EFFECT = tuple(f"newton/{name}/" for name in ("client", "runtime/cli", "runtime/dashboard", "runtime/mcp"))
_MEASURING = (
    *(f"bench/leaderboard/{name}" for name in ("filled_context.py", "conversation_texts.py", "rankers.py")),
    *("bench/leaderboard/rival_worker.py", "bench/scoring.py", "newton/memory/representations.py"),
)

ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LeaderboardRun:
    """The parts that all measurements of a run share. `embedder` is the model of every system."""

    store: ReceiptStore
    scope: AgentScope
    embedder: "Embedder"
    budgets: Sequence[int]
    machine: Mapping[str, Any]
    report_progress: ReportProgress

    def fingerprint(self, system: MeasuredSystem, conversation: DatasetConversation) -> dict[str, str]:
        """Return what the results of a system depend on."""
        return {
            "data": hash_dataset([conversation]),
            "code": hash_code(is_newton=isinstance(system, NewtonSystem)),
            "embedding": self.embedder.identity,
            "system": system.version,
        }

    def read_texts(self, conversation: DatasetConversation) -> ConversationTexts:
        """Return the texts of a conversation, whose vectors all systems share."""
        return ConversationTexts(conversation, self.scope, self.embedder)

    async def measure(self, dataset: str, system: MeasuredSystem, texts: ConversationTexts) -> None:
        """Measure a system on a conversation, unless its results are stored and still valid."""
        conversation = texts.conversation
        stored = self.store.read(dataset, system.key, conversation)
        fingerprint = self.fingerprint(system, conversation)
        if stored and stored.header.fingerprint == fingerprint and select_receipts(stored, conversation, self.budgets):
            self.report_progress(f"{dataset} {conversation.name} {system.title}: kept")
            return
        started, started_at = monotonic_ms(), SystemClock().now()
        receipts = [one async for one in ask_all(self, system, texts)]
        header = self._make_header(dataset, system, conversation.name, started_at, fingerprint)
        seconds = round((monotonic_ms() - started) / 1_000, 1)
        header = header.model_copy(update={"seconds": seconds})
        self.store.write(ReceiptFile(header=header, receipts=tuple(receipts)))
        self.report_progress(f"{dataset} {conversation.name} {system.title}: {seconds} s")

    def _make_header(
        self,
        dataset: str,
        system: MeasuredSystem,
        conversation: str,
        started_at: datetime,
        fingerprint: Mapping[str, str],
    ) -> ReceiptHeader:
        return ReceiptHeader(
            dataset=dataset,
            conversation=conversation,
            system=system.key,
            fingerprint=fingerprint,
            description=system.description,
            measured_at=started_at.isoformat(),
            seconds=0.0,
            machine=self.machine,
            commit=git_commit(Path(__file__).parent),
        )


async def ask_all(
    run: LeaderboardRun, system: MeasuredSystem, texts: ConversationTexts
) -> AsyncGenerator[ContextReceipt]:
    """Store a conversation in a system, and yield the receipts of all questions."""
    questions = texts.conversation.questions
    async with system.open(texts) as ask:
        await ask(questions[0].text, run.budgets[:1])  # to warm up, not counted
        for question in questions:
            embed_ms = await measure_ms(partial(run.embedder.embed, [question.text]))
            for context in await ask(question.text, run.budgets):
                yield make_receipt(texts.conversation, question, context, embed_ms=embed_ms)


def make_receipt(
    conversation: DatasetConversation, question: DatasetQuestion, context: BuiltContext, *, embed_ms: float
) -> ContextReceipt:
    """Compare a context with the evidence of the question. An unknown message counts as missed."""
    gold = conversation.messages_by_ref
    found = [ref for ref in question.gold if ref in gold and is_in_context(gold[ref], context.items)]
    verbatim = [ref for ref in question.gold if ref in gold and is_verbatim_in_context(gold[ref], context.items)]
    return ContextReceipt(
        question=question.id,
        type=question.type,
        variant=context.variant,
        budget=context.budget,
        found=tuple(found),
        missed=tuple(ref for ref in question.gold if ref not in found),
        verbatim=tuple(verbatim),
        tokens=token_counter.count(context.text),
        items=len(context.items),
        ms=round(context.ms, 2),
        embed_ms=round(embed_ms, 2),
        context_sha256=hashlib.sha256(context.stable_text.encode()).hexdigest(),
        is_complete=context.is_complete,
    )


@cache
def hash_code(*, is_newton: bool) -> str:
    """Return a hash of the code that the contexts depend on: of Newton, or of the measurement of other systems."""
    paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "newton").rglob("*") if path.is_file())
    kept = [name for name in paths if not name.endswith(".pyc") and not name.startswith(_WITHOUT_EFFECT)]
    digest = hashlib.sha256()
    for name in (*(kept if is_newton else ()), *_MEASURING):
        digest.update(f"{name}\0".encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()[:16]
