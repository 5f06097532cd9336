"""Functions that convert the settings of the user to the option objects of single components."""

from dataclasses import replace
from importlib import import_module

from newton.agent.loop.completion import TokenLimits
from newton.agent.storage_quota import MEGABYTE, StorageQuota
from newton.brain.hash_chain import ChainHeadFiles, derive_database_key
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.dialogue.compaction.presets import CompactionPreset, find_problem, parse_preset
from newton.dialogue.session_summary import SummarySizes
from newton.errors import ConfigError, InputError
from newton.heart.lifecycle.transition_rules import LifecycleThresholds
from newton.providers.context_windows import DEFAULT_WINDOW, split_window
from newton.settings import Settings

SUMMARY_DIVISOR = 4  # of the daily token limit


def check_settings(settings: Settings) -> None:
    """Raise ConfigError for settings that contradict each other. Those with their default values are not reported."""
    conversation, window = settings.conversation_tokens, settings.window_tokens
    if conversation is not None and window is not None and conversation > window:
        raise ConfigError(
            f"A conversation of {conversation:,} tokens exceeds the context window of {window:,} tokens.",
            hint="Set NEWTON_CONVERSATION_TOKENS below NEWTON_WINDOW_TOKENS, or do not set it.",
        )
    candidates = build_artifact_policy(settings).candidate_count
    if "rag_final_top_k" in settings.model_fields_set and settings.rag_final_top_k > candidates:
        raise ConfigError(
            f"NEWTON_RAG_FINAL_TOP_K is {settings.rag_final_top_k}, but only {candidates} artifacts are compared.",
            hint="Lower NEWTON_RAG_FINAL_TOP_K, or raise NEWTON_RAG_TOP_K_MAX or NEWTON_RAG_RE_RANK_TOP_N.",
        )
    build_summary_sizes(settings)
    if settings.jobs:
        import_module("newton.runtime.jobs.job_settings").build_schedules(settings.jobs)
    if (limit := conversation_budget(settings)) and (problem := find_problem(build_preset(settings), max_tokens=limit)):
        raise ConfigError(
            f"Invalid value for the setting 'compaction': {problem.reason}.",
            hint=f"{problem.remedy} The setting is NEWTON_COMPACTION, or compaction in newton.toml.",
        )


def build_preset(settings: Settings) -> CompactionPreset:
    """Return the compaction preset (how conversations are shortened) that the settings name.

    Raises ConfigError for an unknown name or setting.
    """
    try:
        return parse_preset(settings.compaction)
    except InputError as error:
        raise ConfigError(f"Invalid value for the setting 'compaction': {error.what}", hint=error.hint) from None


def build_storage_quota(settings: Settings) -> StorageQuota:
    """Return the storage quota of each agent. The setting 0 means no limit."""
    return StorageQuota(max_bytes=settings.max_storage_mb * MEGABYTE or None)


def build_turn_limits(settings: Settings) -> TokenLimits:
    """Return the limits of a turn (a message and its reply) in tokens."""
    return TokenLimits(
        context=settings.context_tokens,
        conversation=build_preset(settings).max_tokens
        if settings.conversation_tokens is None
        else settings.conversation_tokens,
        reply=settings.max_output_tokens,
        per_day=settings.llm_tokens_per_day,
        window=settings.window_tokens or DEFAULT_WINDOW,
        working=settings.working_set_tokens,
    )


def summary_tokens_per_day(settings: Settings) -> int:
    """Return the daily token limit of model calls that summarize conversations, apart from that of all other calls."""
    return settings.llm_tokens_per_day // SUMMARY_DIVISOR


def conversation_budget(settings: Settings, window: int | None = None) -> int:
    """Return the maximum number of tokens that a conversation may take in a model request.

    `window` is the context window of the model in tokens; None stands for that of the settings.
    """
    limits = build_turn_limits(settings)
    limits = replace(limits, window=window or limits.window)
    shares = split_window(
        limits.window, reply=limits.reply_reserve, conversation=limits.conversation, context=limits.context
    )
    return shares.conversation


def build_thresholds(settings: Settings) -> LifecycleThresholds:
    """Return the thresholds of the lifecycle rules: the defaults, with the maximum counts by kind of the settings."""
    return LifecycleThresholds(
        max_events=settings.max_events,
        max_entities=settings.max_entities,
        max_relations=settings.max_relations,
        max_procedures=settings.max_procedures,
        max_passages=settings.max_passages,
    )


def build_chain_heads(settings: Settings) -> ChainHeadFiles:
    url = settings.database_url
    return ChainHeadFiles(settings.home / "ledger", derive_database_key(url.get_secret_value() if url else None))


def build_summary_sizes(settings: Settings) -> SummarySizes:
    """Return the sizes of chunks and summaries. Raises ConfigError unless the overlap is smaller than a chunk."""
    if settings.rag_chunk_overlap >= settings.rag_chunk_size:
        raise ConfigError(
            f"Chunks of {settings.rag_chunk_size} tokens cannot overlap by {settings.rag_chunk_overlap} tokens.",
            hint="Set NEWTON_RAG_CHUNK_OVERLAP below NEWTON_RAG_CHUNK_SIZE.",
        )
    return SummarySizes(
        chunk_tokens=settings.rag_chunk_size,
        overlap_tokens=settings.rag_chunk_overlap,
        max_new_messages=settings.convo_summary_every_n_messages,
        summary_tokens=settings.convo_summary_max_tokens,
    )


def build_artifact_policy(settings: Settings) -> ArtifactPolicy:
    """Return the limits for selecting passages of a session's artifacts (long texts) for a context."""
    return ArtifactPolicy(
        top_k=settings.rag_top_k_max,
        min_similarity=settings.rag_similarity_threshold,
        rerank_candidates=settings.rag_re_rank_top_n,
        max_selected=settings.rag_final_top_k,
        max_tokens=settings.rag_per_turn_memory_budget_tokens,
        max_passage_tokens=settings.rag_per_turn_document_budget_tokens,
        max_profile_tokens=settings.rag_per_turn_profile_budget_tokens,
    )
