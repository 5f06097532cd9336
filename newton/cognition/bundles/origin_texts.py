"""Texts for people that say what brought a memory into a context. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.questions.question_rules import MemoryOrigin
from newton.memory.ranking import ThreadPosition, evidence_score, find_named_speakers, neighbour_score
from newton.memory.search_types import RetrievedMemory

TEXTS: Mapping[MemoryOrigin, str] = {
    "injected": "a caller put it into this session",
    "standing": "it applies to every input",
    "triggered": "the input contains a trigger of this procedure",
    "named": "the input names it",
    "related": "it is related to something that the input names",
    "salient": "it is among the most important people and things",
    "recent": "it is among the last events of this session",
    "recent_elsewhere": "it is among the last events of another session",
    "contradicts": "it contradicts a fact that was found",
    "artifact": "it belongs to this session and matches the input",
}
_SPEAKER = re.compile(r"\[[0-9-]+\] ([^:]+): ")


@dataclass(frozen=True, slots=True)
class FixedLine:
    """A line of a context that no search selects, and why it is there. `line_id` is None for a text without an id."""

    line_id: UUID | None
    kind: str
    text: str
    tokens: int
    found_by: str


def list_fixed_lines(assembly_input: AssemblyInput) -> list[FixedLine]:
    """Return the lines of the identity, the censors, the brief, the tasks and the caller."""
    identity, censors, tasks = assembly_input.identity, assembly_input.censors, assembly_input.tasks
    in_each = "which each context has"
    return [
        *(
            FixedLine(t.tenet_id, "identity", t.text, t.tokens, f"it is a line of the identity, {in_each}")
            for t in identity.shown
        ),
        *(
            FixedLine(c.memory_id, "censor", c.block.text, c.block.tokens, f"it is a censor in force, {in_each}")
            for c in censors.lines
        ),
        *(
            FixedLine(
                line.memory_id,
                "brief",
                line.block.text,
                line.block.tokens,
                "it is an open item of the brief of this session",
            )
            for line in assembly_input.brief.lines
        ),
        *(
            FixedLine(None, "task", block.text, block.tokens, "it is a task of this session")
            for blocks in tasks.to_layers().values()
            for block in blocks
        ),
        *(
            FixedLine(None, "text", block.text, block.tokens, "a caller put it into this session or into the request")
            for block in assembly_input.extra
        ),
    ]


class MessageEvidence(NamedTuple):
    """The evidence that the candidates of a context have for its input, by their place in a thread."""

    by_position: Mapping[ThreadPosition, float]

    @classmethod
    def of(cls, memories: Iterable[tuple[RetrievedMemory, float, float]]) -> "MessageEvidence":
        """Return the evidence of memories, each with its cosine similarity and its share of the words."""
        return cls({
            (found.thread_id, found.position): evidence_score(found.kind, cosine, lexical, found.word_count)
            for found, cosine, lexical in memories
            if found.kind == "exchange"
        })  # fmt: skip

    def from_neighbours(self, found: RetrievedMemory) -> float:
        """Return the evidence that a message has from those beside it in its session, as the ranking adds it."""
        return neighbour_score((found.thread_id, found.position), self.by_position) if found.kind == "exchange" else 0.0


def describe_origin(
    found: RetrievedMemory, assembly_input: AssemblyInput, evidence: MessageEvidence, *, cosine: float, lexical: float
) -> str:
    """Return why a memory is a candidate of a context: what brought it, or by what the search found it."""
    origin = assembly_input.gathering.origins.get(found.memory_id)
    if origin == "standing":
        reason = assembly_input.gathering.reasons.get(found.memory_id, TEXTS[origin])
        return f"{reason}; it ranks with the best match, whatever its own similarity ({cosine:.2f})"
    if origin:
        return TEXTS[origin]
    own = evidence_score(found.kind, cosine, lexical, found.word_count)
    speaker = _SPEAKER.match(found.micro)
    reasons = [
        *(["it stands beside a message that matches the input"] if evidence.from_neighbours(found) > own else []),
        *(
            ["the input names its speaker"]
            if speaker and find_named_speakers(assembly_input.input, [speaker[1]])
            else []
        ),
        *([f"the search found it by {_describe_match(cosine, lexical)}"] if own > 0 else []),
    ]
    return "; ".join(reasons) or "its time or its task fits the input"


def _describe_match(cosine: float, lexical: float) -> str:
    by = [*([f"meaning (cosine {cosine:.2f})"] if cosine > 0 else []), *(["its words"] if lexical > 0 else [])]
    return " and ".join(by)
