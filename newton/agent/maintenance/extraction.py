"""Extraction by a model, in the background: facts, procedures, proposed censors and titles of conversations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from newton.agent.llm.structured import StructuredLLM
from newton.cognition.content_words import extract_content_words
from newton.content.skills import Skill, make_slug
from newton.db.pool import Tx
from newton.dialogue import extraction_queue as conversations
from newton.dialogue.extraction_queue import EpisodeLines
from newton.errors import ConflictError, InputError, ProviderError, TokenQuotaError
from newton.heart import censors, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.episodes import EpisodeSummary
from newton.heart.extraction_schema import ExtractionOutput, ProposedFact, ProposedProcedure, build_extraction_prompt
from newton.heart.facts import fact_store as facts
from newton.heart.facts.attributes import has_words
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.identity.standing_instructions import detect_instructions
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import store
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import digest

MAX_ANSWER_TOKENS = 1_500
MIN_WORD_OVERLAP = 0.6


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """Numbers of conversations read and of memories extracted."""

    conversations: int
    facts: int
    procedures: int
    censors: int


async def extract(llm: StructuredLLM, ctx: LifecycleContext, *, limit: int) -> ExtractionResult:
    """Extract from up to `limit` conversations not yet read, oldest first.

    Recalled text and output of tools and the web are not read. A conversation that fails is retried later. Raises
    TokenQuotaError, and ProviderError when two in a row or all fail; earlier results stay stored.
    """
    refused: ProviderError | None = None
    read = learnt = practised = proposed = 0
    async with llm.scope.db.transaction(ctx.agent_id) as tx:
        unread = await conversations.find_unread(tx, agent_id=ctx.agent_id, limit=limit)
    for conversation in unread:
        extracted = None
        if conversation.lines:
            prompt = build_extraction_prompt(conversation.lines, day=conversation.ended_at)
            try:
                extracted = await llm.complete(
                    prompt, ExtractionOutput, purpose="extract", max_tokens=MAX_ANSWER_TOKENS
                )
            except ProviderError as error:
                if refused or isinstance(error, TokenQuotaError):
                    raise
                refused = error
                continue
            refused = None
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            if await conversations.mark_read(tx, conversation.memory_id, ctx=ctx):
                read += 1
                if extracted:
                    own = replace(ctx, trust=conversation.trust)
                    learnt += await _store_facts(tx, conversation, extracted, ctx=own, llm=llm)
                    practised += await _store_procedures(tx, conversation, extracted, ctx=own, llm=llm)
                    proposed += await _propose_censors(tx, extracted, ctx=own, llm=llm)
                    await _store_title(tx, conversation, extracted, ctx=own, llm=llm)
    if refused and not read:
        raise refused
    return ExtractionResult(read, learnt, practised, proposed)


async def _store_facts(
    tx: Tx, conversation: EpisodeLines, extracted: ExtractionOutput, *, ctx: LifecycleContext, llm: StructuredLLM
) -> int:
    # what somebody wants from now on waits for their yes; it is no fact meanwhile, whatever a model makes of it. What
    # nobody was asked about, such as a rule of a team, is one.
    wanted = await identity_store.list_requested_lines(tx, conversation.memory_id, agent_id=ctx.agent_id)
    said = [
        fact
        for fact in extracted.facts
        if clean_model_text(fact.content) and not _restates_request(fact.content, wanted)
    ]
    told = [_to_fact_input(conversation, fact) for fact in said]
    statements = {s.content_hash: s for s in told}
    learnt = await facts.add_facts(tx, list(statements.values()), ctx=ctx)
    born = [await facts.find_fact_id(tx, s, agent_id=ctx.agent_id) for s in statements.values()]
    await store.add_links(tx, "part_of", [(fact, conversation.memory_id) for fact in born], ctx=ctx)
    return sum(what == "new" for what in learnt)


def _restates_request(content: str, requests: Sequence[str]) -> bool:
    """Return whether the fact restates a request: most of its words are in the request."""
    own, many = (
        extract_content_words(content),
        [extract_content_words(words) for words in requests] if detect_instructions(content) else [],
    )
    return any(len(own & theirs) > MIN_WORD_OVERLAP * min(len(own), len(theirs)) for theirs in many)


def _to_fact_input(conversation: EpisodeLines, fact: ProposedFact) -> NewFact:
    subject = clean_model_text(fact.subject or "")
    attribute = clean_model_text(fact.attribute or "")
    return NewFact(
        ref=f"extracted:{conversation.memory_id}:{digest(fact.content).hex()[:16]}",
        content=clean_model_text(fact.content),
        valid_from=conversation.ended_at,
        subject=subject or None,
        attribute=attribute if subject and has_words(attribute) else None,
        source=f"session {conversation.session}",
        sources=(conversation.memory_id,),
    )


async def _store_procedures(
    tx: Tx, conversation: EpisodeLines, extracted: ExtractionOutput, *, ctx: LifecycleContext, llm: StructuredLLM
) -> int:
    """Store procedures under new names; a model replaces none. Return their number."""
    new = 0
    for proposed in extracted.procedures:
        try:
            learnt = await procedures.add_procedure(tx, _to_skill(proposed), ctx=ctx)
        except (InputError, ConflictError):
            continue
        if learnt:
            await store.add_links(tx, "part_of", [(learnt, conversation.memory_id)], ctx=ctx)
            new += 1
    return new


def _to_skill(proposed: ProposedProcedure) -> Skill:
    try:
        return Skill(
            name=make_slug(clean_model_text(proposed.name)),
            description=clean_model_text(proposed.description),
            core=tuple(clean_model_text(step) for step in proposed.steps),
        )
    except ValidationError as error:
        raise InputError("The procedure is not valid.", hint=str(error)) from None


async def _store_title(
    tx: Tx, conversation: EpisodeLines, extracted: ExtractionOutput, *, ctx: LifecycleContext, llm: StructuredLLM
) -> None:
    title, summary = clean_model_text(extracted.title or ""), clean_model_text(extracted.summary or "")
    if title and summary:
        told = EpisodeSummary(title=title, summary=summary, outcome=extracted.outcome)
        await episodes.set_summary(tx, conversation.memory_id, told, ctx=ctx)


async def _propose_censors(tx: Tx, extracted: ExtractionOutput, *, ctx: LifecycleContext, llm: StructuredLLM) -> int:
    """Store proposed censors in quarantine until a person approves them. Return their number."""
    said = [(clean_model_text(proposed.trigger), clean_model_text(proposed.reason)) for proposed in extracted.censors]
    rules = [rule for trigger, reason in said if trigger and reason and (rule := _to_censor_rule(trigger, reason))]
    return len(await censors.add_rules(tx, rules, ctx=ctx))


def _to_censor_rule(trigger: str, reason: str) -> CensorRule | None:
    try:
        return CensorRule(trigger=trigger, reason=reason, match_mode="meaning")
    except InputError:
        return None
