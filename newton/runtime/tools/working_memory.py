"""Contexts from the working memory of a session, for HTTP and the tools."""

from newton.agent.context_inputs import WorkingMemoryInput
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.runtime.tools.views import WorkingMemoryItem, WorkingMemoryResponse
from newton.runtime.wiring import AgentServices


async def build_working_context(newton: AgentServices, query: WorkingMemoryInput) -> WorkingMemoryResponse:
    """Build a context from the working memory of a session.

    Raises NotFoundError for an unknown session or profile.
    """
    memory = await newton.working_memory(query.session)
    context = await memory.create_context(query.profile, query.max_tokens)
    return WorkingMemoryResponse(
        profile=context.profile.name,
        text=context.text,
        tokens=context.tokens,
        limit=context.limit,
        items=[_to_item(one) for one in context.items],
        omitted=[_to_item(one) for one in context.left_out],
    )


def _to_item(candidate: ScoredCandidate) -> WorkingMemoryItem:
    return WorkingMemoryItem.from_source(candidate, score=round(candidate.score, 6))
