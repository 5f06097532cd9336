"""Memories of the agent above a project, merged with those of the project itself. Pure.

The searches of both are separate, so each rates its memories by its own best. Their evidence is comparable, so that the
merged memories are one ranking. What the project says itself takes the place of an equal memory above it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from newton.cognition.sources.gathered_data import AlwaysOn, InputMatches
from newton.cognition.sources.person import merge_persons
from newton.cognition.sources.question_memories import FoundMemories
from newton.heart.entities.entity_lookup import EntityMatches
from newton.heart.identity.tenets import Identity, normalize_line
from newton.heart.statements.change_detection import read_change
from newton.memory.memory import past_reason
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.text.words import extract_content_words

NO_PARENT_MATCHES = InputMatches()
MAX_COMPARED = 12  # facts of each scope, the best ones, that may contradict each other
MIN_SHARED_WORDS = 0.4  # of the content words of the shorter of two facts, for a comparison


def mark_inherited(memories: Iterable[RetrievedMemory]) -> list[RetrievedMemory]:
    """Return the memories with the mark that they are of the parent."""
    return [found._replace(is_inherited=True) for found in memories]


def merge_recalled(own: RecallResult, above: RecallResult, standing: frozenset[UUID] = frozenset()) -> RecallResult:
    """Return what the searches of a project and of its parent found, as one ranking, best first.

    The memories in `standing` keep their relevance: they apply whatever they are compared with.
    """
    inherited = _without_repeated(mark_inherited(above.memories), own.memories)
    own_best, other_best = _find_best(own.memories), _find_best(inherited)
    best = max(own_best, other_best)
    memories = [
        *_scale(own.memories, own_best / best if own_best else 1.0, standing),
        *_scale(inherited, other_best / best if other_best else 1.0, standing),
    ]
    return replace(
        own,
        memories=_link_contradictions(sorted(memories, key=lambda f: (-f.relevance, f.memory_id))),
        missing={**above.missing, **own.missing},
        in_time_range=frozenset(own.in_time_range) | above.in_time_range,
        contradictions=[*own.contradictions, *mark_inherited(above.contradictions)],
        known_share=max(own.known_share, above.known_share),
        text_count=own.text_count + above.text_count,
        probabilities={**above.probabilities, **own.probabilities},
        answer_similarities={**above.answer_similarities, **own.answer_similarities},
    )


def merge_found(own: FoundMemories, above: FoundMemories) -> FoundMemories:
    """Return the memories found for a question in a project and above it, and how they were gathered."""
    standing = own.gathering.standing | above.gathering.standing
    gathering = replace(own.gathering, reasons={**above.gathering.reasons, **own.gathering.reasons}, standing=standing)
    return FoundMemories(merge_recalled(own.recall_result, above.recall_result, standing), gathering)


def merge_always_on(own: AlwaysOn, above: AlwaysOn) -> AlwaysOn:
    """Return the identity and the censors of a project and of its parent, all of which hold. Equal ones occur once."""
    lines = {normalize_line(tenet.text) for tenet in above.identity.tenets}
    tenets = [tenet for tenet in own.identity.tenets if normalize_line(tenet.text) not in lines]
    identity = Identity(
        max(own.identity.version, above.identity.version),
        (*above.identity.tenets, *tenets),
        own.identity.removed_texts | above.identity.removed_texts,
    )
    inherited = [replace(one, is_inherited=True) for one in above.censors]
    rules = {(one.trigger, one.match_mode, one.is_blocking) for one in inherited}
    censors = [one for one in own.censors if (one.trigger, one.match_mode, one.is_blocking) not in rules]
    return AlwaysOn(identity=identity, censors=[*inherited, *censors])


def merge_matches(own: InputMatches, above: InputMatches) -> InputMatches:
    """Return the entities and procedure triggers of a project and of its parent, without what both have."""
    if above is NO_PARENT_MATCHES:
        return own
    names = {trigger.name for trigger in own.procedure_triggers}
    triggers = [trigger for trigger in above.procedure_triggers if trigger.name not in names]
    one, other = own.entity_matches, above.entity_matches
    inherited = _without_repeated(mark_inherited(other.memories), one.memories)
    return InputMatches(
        entity_matches=EntityMatches(
            memories=[*one.memories, *inherited],
            mentioned_ids=one.mentioned_ids | other.mentioned_ids,
            salient_ids=[*one.salient_ids, *other.salient_ids],
            entity_types=one.entity_types | other.entity_types,
            salience={**other.salience, **one.salience},
            distances={**other.distances, **one.distances},
            evidence={**other.evidence, **one.evidence},
        ),
        procedure_triggers=[*own.procedure_triggers, *triggers],
        person=merge_persons(own.person, above.person),
        inherited_ids=frozenset(trigger.memory_id for trigger in triggers),
    )


def _without_repeated(memories: Sequence[RetrievedMemory], own: Sequence[RetrievedMemory]) -> list[RetrievedMemory]:
    known = {(found.kind, found.dedup_text) for found in own}
    return [found for found in memories if (found.kind, found.dedup_text) not in known]


def _find_best(memories: Sequence[RetrievedMemory]) -> float:
    return max((found.evidence_score for found in memories), default=0.0)


def _scale(memories: Sequence[RetrievedMemory], factor: float, standing: frozenset[UUID]) -> list[RetrievedMemory]:
    """Return the memories with their relevance multiplied, except that of standing instructions."""
    return [
        found if found.memory_id in standing else found._replace(relevance=found.relevance * factor)
        for found in memories
    ]


def _link_contradictions(memories: Sequence[RetrievedMemory]) -> list[RetrievedMemory]:
    """Return the memories; the facts of the project are linked with those of the parent that they contradict."""
    facts = [f for f in memories if f.kind == "fact" and not (f.quarantined or past_reason(f.kind, f.state))]
    own = [found for found in facts if not found.is_inherited][:MAX_COMPARED]
    above = [found for found in facts if found.is_inherited][:MAX_COMPARED]
    links: Mapping[UUID, tuple[UUID, ...]] = {
        one.memory_id: found for one in own if (found := tuple(f.memory_id for f in above if _contradicts(one, f)))
    }
    return [
        found._replace(contradicted_ids=[*found.contradicted_ids, *links[found.memory_id]])
        if found.memory_id in links
        else found
        for found in memories
    ]


def _contradicts(own: RetrievedMemory, above: RetrievedMemory) -> bool:
    """Return whether a fact of the project says otherwise than one of its parent.

    The vectors of both are not read, so the share of words that they have in common stands for their similarity.
    """
    words, others = extract_content_words(own.spoken_text), extract_content_words(above.spoken_text)
    shared = len(words & others) / max(min(len(words), len(others)), 1)
    if shared < MIN_SHARED_WORDS:
        return False
    return read_change(above.spoken_text, own.spoken_text, cosine=(1 + shared) / 2).kind == "update"
