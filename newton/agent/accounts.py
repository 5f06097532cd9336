"""Accounts in a model's words: few calls before somebody is answered, and none for a while when it keeps failing."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from newton.agent.asking import Asking
from newton.clock import Clock, stopwatch
from newton.dialogue.compaction import prompting, telling
from newton.dialogue.compaction.prompting import Told
from newton.dialogue.compaction.strategies import Block
from newton.dialogue.compaction.telling import Account, Part
from newton.dialogue.view import Shown
from newton.errors import ProviderError
from newton.memory.hygiene import mended
from newton.memory.memory import Count

CALLS = 3  # of the model at most in one making shorter: somebody waits for a reply meanwhile
SECONDS = 20.0  # that they may take in sum
TRIES = 3  # failures of the model in a row, after which it is left alone for a while
REST = timedelta(minutes=5)
ANSWER = 2  # times the tokens of a block that a model may answer with: the form around the words costs too
LEAST_ANSWER = 300  # tokens; the form alone takes a good part of them
READS = 24_000  # tokens of a prompt at most: more of it makes no better account, and takes long
WINDOW_PART = 0.6  # of a model's window that a prompt may take by our count; models count in their own ways
UNAIDED = "Accounts are put together from the words themselves until it answers."


@dataclass(slots=True)
class Breaker:
    """Counts the failures of a model in a row. With too many it is left alone for a while; then one try shows whether
    it answers again."""

    failures: int = 0
    failed_at: datetime | None = None

    def open(self, now: datetime) -> bool:
        return self.failed_at is not None and self.failures >= TRIES and now < self.failed_at + REST

    def note(self, now: datetime, *, failed: bool) -> bool:
        """Whether it fails for the first time since it last answered."""
        self.failures = self.failures + 1 if failed else 0
        self.failed_at = now if failed else None
        return self.failures == 1


@dataclass(slots=True)
class Allowance:
    """What the model may still do in one making shorter."""

    calls: int = CALLS
    seconds: float = SECONDS

    def for_model(self, blocks: Iterable[Block]) -> set[int]:
        """The first lines of the blocks that it is asked about, if it may: those from which most is left out."""
        told = sorted((block for block in blocks if block.kind != "mask"), key=lambda block: -block.tokens)
        return {block.first for block in told[: self.calls]} if self.seconds > 0 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Of one agent. `window` is all that the model reads and writes in one call, in tokens."""

    clock: Clock
    count: Count
    model: Asking | None = None
    window: int = 128_000
    breaker: Breaker = field(default_factory=Breaker)

    async def told(self, block: Block, items: Sequence[Shown], allowance: Allowance) -> tuple[Told | None, str | None]:
        """The block in the model's words, or None when it is not asked, fails or gives nothing of use. When it has just
        begun to fail, what to tell of that."""
        if self.model is None or allowance.calls < 1 or allowance.seconds <= 0 or self.breaker.open(self.clock.now()):
            return None, None
        started, told, why = stopwatch(), None, f"{self.model.name} gave nothing that can be used."
        allowance.calls -= 1
        try:
            told = await self._asked(self.model, block, items, allowance.seconds)
        except ProviderError as error:
            why = str(error)
        allowance.seconds -= (stopwatch() - started) / 1_000
        failed = told is None or not any(told.items(part) for part in telling.PARTS)
        begins = self.breaker.note(self.clock.now(), failed=failed)
        return None if failed else told, f"{why} {UNAIDED}" if begins else None

    async def _asked(self, model: Asking, block: Block, items: Sequence[Shown], seconds: float) -> Told | None:
        answer = max(block.most * ANSWER, LEAST_ANSWER)
        room = min(READS, int(self.window * WINDOW_PART) - answer)
        fence = f"=== {secrets.token_hex(8)} ==="
        prompt = prompting.prompt(block.kind, items, fence=fence, most=room, count=self.count)
        return await model.fill(prompt, Told, purpose="compact", max_tokens=answer, seconds=seconds)


def joined(told: Told, found: Account) -> Account:
    """A model's items, and of what was found the parts that have to be exact: decisions, errors, artifacts. Pure."""
    account = Account()
    for part in telling.PARTS:
        for words in told.items(part):
            account.note(part, mended(words))
    exact: tuple[Part, ...] = ("decided", "failed", "thing")
    for part in exact:
        for words in found.items(part):
            account.note(part, words)
    return account
