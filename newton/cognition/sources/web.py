"""Web search for inputs about current events. The results are stored as artifacts of the session."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.needs_web import find_news_questions
from newton.cognition.sources.session_artifacts import is_searchable
from newton.db.pool import Database, in_transaction
from newton.dialogue.artifacts import Artifact, ArtifactWriter
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import SUMMARY_TOKENS

if TYPE_CHECKING:
    from newton.providers.web_search import WebResult, WebSearch

ORIGIN = "web search"
WEB_SECONDS = 5.0  # for a search, which the other sources of a context wait for
MAX_URL_CHARS = 80  # shown in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """Searches the web for inputs that ask for current events, and stores the results."""

    search: "WebSearch"
    db: Database
    count_tokens: TokenCounter

    def should_search(self, request: ContextBuildRequest, *, now: datetime) -> bool:
        """Return True for an input of a session that asks for current events.

        Return False if the context is for a past moment, or its filters exclude artifacts.
        """
        present = request.session_id is not None and request.as_of is None
        return present and request.filters.allows_kind("artifact") and self._asks_for_news(request.input, now)

    def _asks_for_news(self, text: str, now: datetime) -> bool:
        return is_searchable(text) and bool(find_news_questions(text, now=now))

    async def search_and_store(self, request: ContextBuildRequest, *, now: datetime) -> None:
        """Search the web and store the results as artifacts of the session.

        Only the sentences that ask for current events are sent. Raises ProviderError when the search fails.
        """
        assert request.session_id is not None, "the web is searched within a session only"
        assert not in_transaction()
        results = await self.search.search(clean_model_text(find_news_questions(request.input, now=now)))
        ctx = WriteContext(
            agent_id=request.agent_id, now=now, origin=ORIGIN, trust="web", count_tokens=self.count_tokens
        )
        writer = ArtifactWriter(session_id=request.session_id, ctx=ctx)
        async with self.db.transaction(request.agent_id) as tx:
            await writer.add_excerpts(tx, [_to_artifact(result, n, now=now) for n, result in enumerate(results)])


def _to_artifact(result: "WebResult", index: int, *, now: datetime) -> Artifact:
    """Convert a search result to an artifact, with the current time and the URL."""
    source = clean_model_text(result.url)
    shown_url = source if len(source) <= MAX_URL_CHARS else f"{source[:MAX_URL_CHARS]}…"
    parts = filter(None, (result.title, result.published and f"({result.published})", result.text))
    return Artifact(
        type="tools",
        prefix=f"[{now:%Y-%m-%d %H:%M}] from the web ({shown_url}): ",
        text=clean_model_text(" ".join(parts)),
        max_tokens=SUMMARY_TOKENS,
        occurred_at=now,
        trust="web",
        key=("web", f"{now:%Y-%m-%d}", result.url, result.text),
        index=index,
        source=source,
    )
