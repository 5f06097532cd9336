"""Ranking of facts by the subject that an input names. Pure."""

from collections.abc import Sequence

from newton.memory.search_types import RetrievedMemory
from newton.text.names import find_names

OTHER_SUBJECT_FACTOR = 0.9  # of the relevance of the best fact on the named subject


def demote_other_subjects(text: str, memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Rank facts on other subjects below the best fact on a subject that the text names; return all, best first.

    A fact is on another subject if it begins with a name and contains none of the names in the text.
    """
    names = {word for mention in find_names(text) for word in mention.text.casefold().split()}
    facts = [found for found in memories if found.kind == "fact"] if names else []
    named = {found.memory_id for found in facts if any(name in found.summary.casefold() for name in names)}
    if not named:
        return memories
    limit = OTHER_SUBJECT_FACTOR * max(found.relevance for found in facts if found.memory_id in named)
    above = [found for found in facts if found.memory_id not in named and found.relevance > limit]
    others = {found.memory_id for found in above if _begins_with_name(found.summary)}
    demoted = [f._replace(relevance=limit) if f.memory_id in others else f for f in memories]
    return sorted(demoted, key=lambda f: (-f.relevance, f.memory_id))


def _begins_with_name(text: str) -> bool:
    return any(mention.start == 0 for mention in find_names(text))
