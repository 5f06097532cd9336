"""The two findings of `newton doctor` on languages: those in which frames are chosen, and those of the memories."""

from collections.abc import Iterable, Mapping

from newton.cognition.frames.language_coverage import measure_coverage
from newton.cognition.frames.training import NO_EMBEDDER, knows_languages
from newton.content.frames import Frame
from newton.languages.language_data import ENGLISH, LANGUAGES, load_language
from newton.memory import store
from newton.providers import multilingual_e5
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.wiring import AgentServices


def check_frame_languages(frames: Mapping[str, Frame], identity: str | None) -> HealthFinding:
    """Return the finding on the languages in which frames are chosen. `identity` is that of the embedding model.

    It is a note if a frame has too few examples in a language.
    """
    coverage = measure_coverage(frames, LANGUAGES)
    detail = f"languages of frames: chosen in {_join_names(coverage.languages) or 'none'}"
    if knows_languages(identity or NO_EMBEDDER):
        detail += ", with the embedding model"
    elif identity:
        detail += ", with the embedding model in English and by words and form in the others"
    else:
        detail += ", by words and form"
    detail += "; in all others mostly the neutral frame is used"
    for name, codes in coverage.missing.items():
        detail += f"; the frame {name} has too few examples in {_join_names(codes)}"
    if coverage.missing:
        return HealthFinding("note", detail, "Add examples in these languages to the file of the frame.")
    return HealthFinding("ok", detail)


async def check_memory_languages(newton: AgentServices) -> HealthFinding:
    """Return the finding on the languages of the memories and how each is searched.

    It is a note if memories in another language than English are searched with the embedding model for English.
    """
    async with newton.scope.transaction() as tx:
        counts = await store.count_by_language(tx, agent_id=newton.scope.agent_id)
    stored = ", ".join(f"{count} in {load_language(code).name}" for code, count in counts.items()) or "none yet"
    detail = f"languages of memories: {stored}; searched by words in {_join_names(LANGUAGES)}"
    embedder = newton.scope.embedder
    if embedder is None:
        return HealthFinding("ok", f"{detail}, and not by meaning")
    if embedder.identity == multilingual_e5.read_identity():
        return HealthFinding("ok", f"{detail}, and by meaning in all of these and across them")
    if newton.settings.embedding_provider == "openai":
        return HealthFinding("ok", f"{detail}, and by meaning in those that the model {embedder.name} knows")
    detail = f"{detail}, and by meaning in English only"
    is_english = set(counts) <= {ENGLISH}
    return HealthFinding("ok" if is_english else "note", detail, "" if is_english else _multilingual_hint())


def _join_names(codes: Iterable[str]) -> str:
    return ", ".join(load_language(code).name for code in codes)


def _multilingual_hint() -> str:
    install = "" if multilingual_e5.read_identity() else f"{multilingual_e5.INSTALL_HINT} "
    return f"{install}Set NEWTON_EMBEDDING_PROVIDER=multilingual and run `newton reembed`."
