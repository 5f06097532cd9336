"""The texts of a conversation for systems that are not Newton: lines, their tokens, stems and vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bench.dataset import DatasetConversation, DatasetMessage, read_messages
from bench.leaderboard.filled_context import MESSAGE_FORMS, MessageForm, RankedLine, render_messages
from newton.agent.scope import AgentScope
from newton.db.queries import load
from newton.providers import token_counter
from newton.text.words import list_terms

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("bench.leaderboard", "stems.sql")
BATCH_SIZE = 32


@dataclass
class ConversationTexts:
    """A conversation as lines with date and speaker. Vectors are computed once for all systems."""

    conversation: DatasetConversation
    scope: AgentScope
    embedder: "Embedder"
    _vectors: "dict[str, Vector]" = field(default_factory=dict[str, "Vector"])

    @cached_property
    def messages(self) -> list[DatasetMessage]:
        return read_messages(self.conversation)

    @cached_property
    def rendered(self) -> dict[MessageForm, list[RankedLine]]:
        """Return the lines of the messages in each form."""
        count = token_counter.count
        return {form: render_messages(self.messages, form, count_tokens=count) for form in MESSAGE_FORMS}

    @property
    def lines(self) -> list[str]:
        """Return the whole messages, which all systems index."""
        return [line.text for line in self.rendered["whole"]]

    async def embed_lines(self) -> "list[Vector]":
        """Return the vectors of the lines."""
        missing = [line for line in dict.fromkeys(self.lines) if line not in self._vectors]
        for start in range(0, len(missing), BATCH_SIZE):
            batch = missing[start : start + BATCH_SIZE]
            self._vectors.update(zip(batch, await self.embedder.embed(batch), strict=True))
        return [self._vectors[line] for line in self.lines]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts. Only those of lines are stored, so that a question costs what it costs."""
        new = [text for text in texts if text not in self._vectors]
        computed = dict(zip(new, await self.embedder.embed(new), strict=True)) if new else {}
        sources = (computed if text in computed else self._vectors for text in texts)
        return [source[text].tolist() for source, text in zip(sources, texts, strict=True)]

    async def stem(self) -> dict[str, list[str]]:
        """Return the stems of all lines and questions, without stop words."""
        texts = [*self.lines, *(question.text for question in self.conversation.questions)]
        terms = {text: list_terms(text) for text in texts}
        words = sorted({term for own in terms.values() for term in own})
        async with self.scope.transaction() as tx:
            rows = await SQL["stem_words"].fetch_all(tx, words=words)
        stems: dict[str, list[str]] = {row["word"]: row["stems"] or [row["word"]] for row in rows}
        stems |= {row["word"]: [] for row in rows if row["stems"] == []}
        return {text: [stem for term in own for stem in stems[term]] for text, own in terms.items()}
