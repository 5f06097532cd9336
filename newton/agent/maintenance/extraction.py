"""Extraction of facts, procedures, proposed censors and titles from conversations, by a model in the background."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from pydantic import ValidationError

from newton.agent.llm.structured import StructuredLLM
from newton.agent.maintenance.extracted_facts import ExtractionResult, restates_request, store_facts
from newton.agent.maintenance.statement_extraction import embed_statements, store_statements
from newton.cognition.content_words import extract_content_words
from newton.content.skills import SkillFile, make_slug
from newton.db.pool import Tx
from newton.dialogue import extraction_queue as conversations
from newton.dialogue.extraction_queue import EpisodeLines
from newton.errors import ConflictError, InputError, ProviderError, TokenQuotaError
from newton.heart import censors, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.episodes import EpisodeSummary
from newton.heart.extraction_schema import ExtractionOutput, ProposedFact, ProposedProcedure, build_extraction_prompt
from newton.heart.facts.attributes import has_words
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import store
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TRUST_TIERS, Trust, digest

MAX_ANSWER_TOKENS = 1_500
MAX_PROMPT_CHARS = 400_000  # of a conversation that the model reads; the statement classifier reads a longer one
GIVE_UP_AFTER = timedelta(days=1)  # since the end of a conversation


async def extract(
    llm: StructuredLLM, ctx: LifecycleContext, *, limit: int, ended_before: datetime | None = None
) -> ExtractionResult:
    """Extract memories from up to `limit` unread conversations, oldest first, with a model.

    With `ended_before`, only conversations that ended before this time are read. Recalled text and the output of tools
    and of the web are not read. If a part of the model's answer for a conversation is not valid, and the rest has
    nothing to store, the statement classifier reads the conversation instead. If the call of the model fails, the
    classifier reads the conversation for now, and the next run asks the model again. The model is no longer asked about
    a conversation that ended more than GIVE_UP_AFTER ago, if it answered for another conversation in the same run.

    Raises TokenQuotaError, and ProviderError if the model fails twice in a row or for all conversations; stored results
    remain.
    """
    async with llm.scope.db.transaction(ctx.agent_id) as tx:
        unread = await conversations.find_unread(tx, agent_id=ctx.agent_id, limit=limit, ended_before=ended_before)
    result = ExtractionResult()
    failed: list[EpisodeLines] = []
    failure: ProviderError | None = None
    for position, conversation in enumerate(unread):
        try:
            output = await _ask(llm, conversation)
        except ProviderError as error:
            if failure or isinstance(error, TokenQuotaError):
                await _parse_unanswered(llm, [*failed, *unread[position:]], ctx=ctx)
                raise
            failure = error
            failed.append(conversation)
            continue
        failure = None
        result += await _store_answer(llm, conversation, output, ctx=ctx)
    await _parse_unanswered(llm, failed, ctx=ctx, give_up=result.conversations > 0)
    if failure and not result.conversations:
        raise failure
    return result + ExtractionResult(failed=len(failed))


async def _ask(llm: StructuredLLM, conversation: EpisodeLines) -> ExtractionOutput | None:
    """Return the model's answer for a conversation.

    Return None if no part of the answer is usable, there are no messages, or they are too long for a prompt.
    """
    if not 0 < sum(len(message.content) for message in conversation.messages) <= MAX_PROMPT_CHARS:
        return None
    prompt = build_extraction_prompt(conversation.lines, day=conversation.ended_at)
    output, left_out = await llm.complete(prompt, ExtractionOutput, purpose="extract", max_tokens=MAX_ANSWER_TOKENS)
    has_memories = output is not None and (output.facts or output.procedures or output.censors)
    return output if has_memories or not left_out else None


async def _store_answer(
    llm: StructuredLLM, conversation: EpisodeLines, output: ExtractionOutput | None, *, ctx: LifecycleContext
) -> ExtractionResult:
    """Store what the model extracted or, if `output` is None, what the statement classifier finds.

    Stores nothing if another worker has read the conversation meanwhile.
    """
    db, embedder = llm.scope.db, llm.scope.embedder
    evidence = await embed_statements(db, ctx, embedder, conversation) if output is None else None
    async with db.transaction(ctx.agent_id) as tx:
        if not await conversations.mark_read(tx, conversation.memory_id, ctx=ctx):
            return ExtractionResult()
        if output is None:
            return ExtractionResult(1, await store_statements(tx, conversation, evidence, ctx=ctx))
        return await _store_output(tx, conversation, output, ctx=ctx)


async def _store_output(
    tx: Tx, conversation: EpisodeLines, output: ExtractionOutput, *, ctx: LifecycleContext
) -> ExtractionResult:
    """Store the facts, procedures, censors and title in the model's answer; return how many of each were stored."""
    own_ctx = replace(ctx, trust=_find_trust(conversation, output))
    facts = await _store_facts(tx, conversation, output, ctx=own_ctx)
    procedure_count = await _store_procedures(tx, conversation, output, ctx=own_ctx)
    censor_count = await _propose_censors(tx, output, ctx=own_ctx)
    await _store_title(tx, conversation, output, ctx=own_ctx)
    return ExtractionResult(1, facts, procedure_count, censor_count)


def _find_trust(conversation: EpisodeLines, output: ExtractionOutput) -> Trust:
    """Return the trust of an answer: lower if it has words that only text of tools and the web in the session has."""
    told = extract_content_words(" ".join(message.content for message in conversation.messages))
    foreign = extract_content_words(conversation.foreign_text) - told
    return TRUST_TIERS[-1] if foreign & extract_content_words(output.model_dump_json()) else "agent"


async def _parse_unanswered(
    llm: StructuredLLM, unanswered: Sequence[EpisodeLines], *, ctx: LifecycleContext, give_up: bool = False
) -> None:
    """Extract facts by the statement classifier from conversations for which the model failed, once from each.

    With `give_up`, the model is not asked again about conversations that ended more than GIVE_UP_AFTER ago.
    """
    for conversation in unanswered:
        evidence = await embed_statements(llm.scope.db, ctx, llm.scope.embedder, conversation)
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            if await conversations.mark_parsed(tx, conversation.memory_id, ctx=ctx):
                await store_statements(tx, conversation, evidence, ctx=ctx)
            if give_up and conversation.ended_at < ctx.now - GIVE_UP_AFTER:
                await conversations.mark_read(tx, conversation.memory_id, ctx=ctx)


async def _store_facts(tx: Tx, conversation: EpisodeLines, output: ExtractionOutput, *, ctx: LifecycleContext) -> int:
    """Store the extracted facts; return how many were not known before.

    A fact that restates a line proposed for the identity is skipped, because a person decides on the proposal.
    """
    requests = await identity_store.list_requested_lines(tx, conversation.covered, agent_id=ctx.agent_id)
    facts = [
        _to_fact_input(conversation, fact)
        for fact in output.facts
        if clean_model_text(fact.content) and not restates_request(fact.content, requests)
    ]
    return await store_facts(tx, facts, conversation.memory_id, ctx=ctx)


def _to_fact_input(conversation: EpisodeLines, fact: ProposedFact) -> NewFact:
    subject, attribute = clean_model_text(fact.subject or ""), clean_model_text(fact.attribute or "")
    return NewFact(
        ref=f"extracted:{conversation.memory_id}:{digest(fact.content).hex()[:16]}",
        content=clean_model_text(fact.content),
        valid_from=conversation.ended_at,
        subject=subject or None,
        attribute=attribute if subject and has_words(attribute) else None,
        source=conversation.source,
        sources=(conversation.memory_id, *_find_message(conversation, fact.content)),
    )


def _find_message(conversation: EpisodeLines, text: str) -> list[UUID]:
    """Return the id of the user message that shares the most content words with `text`; the later one of equals.

    Return an empty list if no message shares a word.
    """
    words = extract_content_words(text)
    said = [message for message in conversation.messages if message.role == "user"]
    shared = [(len(words & extract_content_words(message.content)), n) for n, message in enumerate(said)]
    count, position = max(shared, default=(0, 0))
    return [said[position].memory_id] if count else []


async def _store_procedures(
    tx: Tx, conversation: EpisodeLines, output: ExtractionOutput, *, ctx: LifecycleContext
) -> int:
    """Store the extracted procedures with new names; return their number. Existing procedures are never replaced."""
    count = 0
    for proposed in output.procedures:
        try:
            memory_id = await procedures.add_procedure(tx, _to_skill(proposed), ctx=ctx)
        except (InputError, ConflictError):
            continue
        if memory_id:
            await store.add_links(tx, "part_of", [(memory_id, conversation.memory_id)], ctx=ctx)
            count += 1
    return count


def _to_skill(proposed: ProposedProcedure) -> SkillFile:
    try:
        return SkillFile(
            name=make_slug(clean_model_text(proposed.name)),
            description=clean_model_text(proposed.description),
            core=tuple(clean_model_text(step) for step in proposed.steps),
        )
    except ValidationError as error:
        raise InputError("The extracted procedure is not valid.", hint=str(error)) from None


async def _store_title(tx: Tx, conversation: EpisodeLines, output: ExtractionOutput, *, ctx: LifecycleContext) -> None:
    title, text = clean_model_text(output.title or ""), clean_model_text(output.summary or "")
    if title and text:
        summary = EpisodeSummary(title=title, summary=text, outcome=output.outcome)
        await episodes.set_summary(tx, conversation.memory_id, summary, ctx=ctx)


async def _propose_censors(tx: Tx, output: ExtractionOutput, *, ctx: LifecycleContext) -> int:
    """Store the extracted censors, which are not in force before a person approves them; return their number."""
    texts = [(clean_model_text(proposed.trigger), clean_model_text(proposed.reason)) for proposed in output.censors]
    rules = [rule for trigger, reason in texts if trigger and reason and (rule := _to_censor_rule(trigger, reason))]
    return len(await censors.add_rules(tx, rules, ctx=ctx))


def _to_censor_rule(trigger: str, reason: str) -> CensorRule | None:
    try:
        return CensorRule(trigger=trigger, reason=reason, match_mode="meaning")
    except InputError:
        return None
