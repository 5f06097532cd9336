"""The finding of `newton doctor` on the languages of the memories and how each is served."""

from newton.languages.language_data import ENGLISH, LANGUAGES, load_language
from newton.memory import store
from newton.providers import multilingual_e5
from newton.runtime.cli.operations.health_check import HealthFinding
from newton.runtime.wiring import AgentServices


async def check_languages(newton: AgentServices) -> HealthFinding:
    """Return the finding on how the languages of the memories are served.

    It is a note if memories in another language than English are searched with the embedding model for English.
    """
    async with newton.scope.transaction() as tx:
        counts = await store.count_by_language(tx, agent_id=newton.scope.agent_id)
    stored = ", ".join(f"{count} in {load_language(code).name}" for code, count in counts.items()) or "none yet"
    served = ", ".join(load_language(code).name for code in LANGUAGES)
    detail = f"words, dates, questions and statements are read in {served}; memories: {stored}"
    embedder, provider = newton.scope.embedder, newton.settings.embedding_provider
    if embedder is None:
        return HealthFinding("ok", f"{detail}; nothing is searched by meaning")
    if embedder.identity == multilingual_e5.read_identity():
        return HealthFinding("ok", f"{detail}; searched by meaning in all of these, and across them")
    if provider == "openai":
        return HealthFinding("ok", f"{detail}; the model {embedder.name} decides which are searched by meaning")
    is_english = set(counts) <= {ENGLISH}
    detail = f"{detail}; only English is searched by meaning, the others by their words"
    return HealthFinding("ok" if is_english else "note", detail, "" if is_english else _multilingual_hint())


def _multilingual_hint() -> str:
    install = "" if multilingual_e5.read_identity() else f"{multilingual_e5.INSTALL_HINT} "
    return f"{install}Set NEWTON_EMBEDDING_PROVIDER=multilingual and run `newton reembed`."
