"""What a model takes from conversations, off the hot path: facts, procedures, proposed censors, and what to call it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from newton.agent.asking import Asking
from newton.cognition.refresh import own_words
from newton.content.skills import Skill, slug
from newton.db.pool import Tx
from newton.dialogue import conversations
from newton.dialogue.conversations import Conversation
from newton.errors import ConflictError, InputError, ProviderError, SpendError
from newton.heart import censors, episodes, facts, identity, procedures
from newton.heart.attributes import says_something
from newton.heart.censors import Rule
from newton.heart.episodes import Told
from newton.heart.extracting import Extracted, ProposedFact, ProposedProcedure, extraction_prompt
from newton.heart.facts import Statement
from newton.heart.lifecycle.engine import Ground
from newton.heart.wishes import wishes
from newton.memory import store
from newton.memory.hygiene import mended
from newton.memory.memory import digest

ANSWER_TOKENS = 1_500
MOSTLY = 0.6


@dataclass(frozen=True, slots=True)
class Harvest:
    """What was taken from how many conversations."""

    conversations: int
    facts: int
    procedures: int
    censors: int


async def extract(asking: Asking, ctx: Ground, *, most: int) -> Harvest:
    """Has a model read at most so many conversations that none has read yet, the oldest first.

    Recalled text is not among the lines, nor what tools and the web said. A conversation that the model does not take
    is left for another time. Raises SpendError, and ProviderError when it fails at two in a row or at all of them; what
    was taken until then is kept.
    """
    refused: ProviderError | None = None
    read = learnt = practised = proposed = 0
    async with asking.scope.db.work(ctx.agent_id) as tx:
        unread = await conversations.unread(tx, agent_id=ctx.agent_id, most=most)
    for conversation in unread:
        extracted = None
        if conversation.lines:
            prompt = extraction_prompt(conversation.lines, day=conversation.ended_at)
            try:
                extracted = await asking.fill(prompt, Extracted, purpose="extract", max_tokens=ANSWER_TOKENS)
            except ProviderError as error:
                if refused or isinstance(error, SpendError):
                    raise
                refused = error
                continue
            refused = None
        async with asking.scope.db.work(ctx.agent_id) as tx:
            if await conversations.mark_read(tx, conversation.memory_id, ctx=ctx):
                read += 1
                if extracted:
                    own = replace(ctx, trust=conversation.trust)
                    learnt += await _learn(tx, conversation, extracted, ctx=own, asking=asking)
                    practised += await _practise(tx, conversation, extracted, ctx=own, asking=asking)
                    proposed += await _propose(tx, extracted, ctx=own, asking=asking)
                    await _entitle(tx, conversation, extracted, ctx=own, asking=asking)
    if refused and not read:
        raise refused
    return Harvest(read, learnt, practised, proposed)


async def _learn(tx: Tx, conversation: Conversation, extracted: Extracted, *, ctx: Ground, asking: Asking) -> int:
    # what somebody wants from now on waits for their yes; it is no fact meanwhile, whatever a model makes of it. What
    # nobody was asked about, such as a rule of a team, is one.
    wanted = await identity.wanted(tx, conversation.memory_id, agent_id=ctx.agent_id)
    said = [fact for fact in extracted.facts if mended(fact.content) and not _is_any(fact.content, wanted)]
    told = [_statement(conversation, fact) for fact in said]
    statements = {s.content_hash: s for s in told}
    learnt = await facts.learn(tx, list(statements.values()), ctx=ctx)
    born = [await facts.telling(tx, s, agent_id=ctx.agent_id) for s in statements.values()]
    await store.connect(tx, "part_of", [(fact, conversation.memory_id) for fact in born], ctx=ctx)
    return sum(what == "new" for what in learnt)


def _is_any(content: str, wanted: Sequence[str]) -> bool:
    """Whether it says in a model's words what somebody wants: a wish, with most of the words of theirs."""
    own, many = own_words(content), [own_words(words) for words in wanted] if wishes(content) else []
    return any(len(own & theirs) > MOSTLY * min(len(own), len(theirs)) for theirs in many)


def _statement(conversation: Conversation, fact: ProposedFact) -> Statement:
    subject = mended(fact.subject or "")
    attribute = mended(fact.attribute or "")
    return Statement(
        ref=f"extracted:{conversation.memory_id}:{digest(fact.content).hex()[:16]}",
        content=mended(fact.content),
        at=conversation.ended_at,
        subject=subject or None,
        attribute=attribute if subject and says_something(attribute) else None,
        source=f"session {conversation.session}",
        sources=(conversation.memory_id,),
    )


async def _practise(tx: Tx, conversation: Conversation, extracted: Extracted, *, ctx: Ground, asking: Asking) -> int:
    """Ways of doing something that worked, unless there is a procedure of that name: a model replaces none."""
    new = 0
    for proposed in extracted.procedures:
        try:
            learnt = await procedures.learn(tx, _skill(proposed), ctx=ctx)
        except (InputError, ConflictError):
            continue
        if learnt:
            await store.connect(tx, "part_of", [(learnt, conversation.memory_id)], ctx=ctx)
            new += 1
    return new


def _skill(proposed: ProposedProcedure) -> Skill:
    try:
        return Skill(
            name=slug(mended(proposed.name)),
            description=mended(proposed.description),
            core=tuple(mended(step) for step in proposed.steps),
        )
    except ValidationError as error:
        raise InputError("That is no procedure.", hint=str(error)) from None


async def _entitle(tx: Tx, conversation: Conversation, extracted: Extracted, *, ctx: Ground, asking: Asking) -> None:
    title, summary = mended(extracted.title or ""), mended(extracted.summary or "")
    if title and summary:
        told = Told(title=title, summary=summary, outcome=extracted.outcome)
        await episodes.structure(tx, conversation.memory_id, told, ctx=ctx)


async def _propose(tx: Tx, extracted: Extracted, *, ctx: Ground, asking: Asking) -> int:
    """Censors that a model proposes wait in quarantine for a person."""
    said = [(mended(proposed.trigger), mended(proposed.reason)) for proposed in extracted.censors]
    rules = [rule for trigger, reason in said if trigger and reason and (rule := _rule(trigger, reason))]
    return len(await censors.forbid(tx, rules, ctx=ctx))


def _rule(trigger: str, reason: str) -> Rule | None:
    try:
        return Rule(trigger=trigger, reason=reason, sense="meaning")
    except InputError:
        return None
