"""What settings say, as the parts take it."""

from datetime import timedelta

from newton.agent.speaking import Limits
from newton.cognition.earlier import Selecting
from newton.dialogue.condensing import Sizes
from newton.dialogue.window import rooms
from newton.errors import ConfigError
from newton.heart.lifecycle.thresholds import Thresholds
from newton.settings import Settings


def check(given: Settings) -> None:
    """Raises ConfigError for settings of which one has the other do nothing. What was not set gives way instead."""
    if "conversation_tokens" in given.model_fields_set and given.conversation_tokens > given.window_tokens:
        raise ConfigError(
            f"A conversation of {given.conversation_tokens:,} tokens is more than a window of {given.window_tokens:,}.",
            hint="Set NEWTON_CONVERSATION_TOKENS below NEWTON_WINDOW_TOKENS, or leave it out.",
        )
    looked_at = selecting(given).candidates
    if "rag_final_top_k" in given.model_fields_set and given.rag_final_top_k > looked_at:
        raise ConfigError(
            f"{given.rag_final_top_k} artifacts cannot go into a context when {looked_at} are looked at.",
            hint="Set NEWTON_RAG_FINAL_TOP_K below NEWTON_RAG_TOP_K_MAX or NEWTON_RAG_RE_RANK_TOP_N.",
        )
    sizes(given)


def limits(given: Settings) -> Limits:
    """What one turn may cost."""
    return Limits(
        context=given.context_tokens,
        conversation=given.conversation_tokens,
        reply=given.reply_tokens,
        per_day=given.llm_tokens_per_day,
        window=given.window_tokens,
        working=given.working_tokens,
    )


def room(given: Settings) -> int:
    """What a conversation may cost in a request, by our own count."""
    most = limits(given)
    return rooms(most.window, reply=most.reply, conversation=most.conversation, context=most.context).conversation


def thresholds(given: Settings) -> Thresholds:
    """At which memories change their state, as the settings say."""
    return Thresholds(
        core_sources=given.core_sources,
        facts_per_attribute=given.facts_per_attribute,
        summarized_after=timedelta(days=given.summarized_days),
        archived_after=timedelta(days=given.archived_days),
        procedure_trials=given.procedure_trials,
        effective_above=given.procedure_effective,
        ineffective_below=given.procedure_ineffective,
        censor_trials=given.censor_trials,
        false_positives_above=given.censor_false_share,
        most_events=given.most_events,
        most_entities=given.most_entities,
        most_relations=given.most_relations,
        most_procedures=given.most_procedures,
        most_passages=given.most_passages,
    )


def sizes(given: Settings) -> Sizes:
    """Into what conversations and documents are cut. Raises ConfigError when a piece would only repeat."""
    if given.rag_chunk_overlap >= given.rag_chunk_size:
        raise ConfigError(
            f"An overlap of {given.rag_chunk_overlap} tokens leaves nothing new in {given.rag_chunk_size}.",
            hint="Set NEWTON_RAG_CHUNK_OVERLAP below NEWTON_RAG_CHUNK_SIZE.",
        )
    return Sizes(
        chunk=given.rag_chunk_size,
        overlap=given.rag_chunk_overlap,
        every=given.convo_summary_every_n_messages,
        summary=given.convo_summary_max_tokens,
    )


def selecting(given: Settings) -> Selecting:
    """How artifacts of a session are chosen for its contexts."""
    return Selecting(
        top_k=given.rag_top_k_max,
        threshold=given.rag_similarity_threshold,
        rerank=given.rag_re_rank_top_n,
        final=given.rag_final_top_k,
        tokens=given.rag_per_turn_memory_budget_tokens,
    )
