"""Merging of many facts on one attribute into a few general ones, without a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, takewhile
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.memory import TokenCounter, Trust, digest, lowest_trust
from newton.memory.representations import SUMMARY_TOKENS, one_line, to_bullet

SQL = load("newton.heart.facts", "fact_merges.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFact:
    """A fact to merge into a generalization."""

    subject: str
    attribute: str
    memory_id: UUID
    full_text: str
    trust: Trust
    valid_from: datetime


async def generalize_facts(db: Database, ctx: LifecycleContext) -> int:
    """Merge the facts on each attribute that has too many; return the number of facts merged.

    The facts on one attribute of one subject are merged in one transaction.
    """
    async with db.transaction(ctx.agent_id) as tx:
        groups = await _find_large_groups(tx, ctx)
    for group in groups:
        async with db.transaction(ctx.agent_id) as tx:
            for fact, trust in build_generalizations(group, count_tokens=ctx.count_tokens):
                await fact_store.add_facts(tx, [fact], ctx=replace(ctx, trust=trust))
    return sum(len(group) for group in groups)


async def _find_large_groups(tx: Tx, ctx: LifecycleContext) -> list[list[SourceFact]]:
    rows = await SQL["list_crowded_attributes"].fetch_all(
        tx, agent_id=ctx.agent_id, max_facts=ctx.thresholds.max_facts_per_attribute
    )
    groups = groupby(rows, key=lambda row: (row["subject_key"], row["attribute"], row["is_of_person"]))
    fields = ("subject", "attribute", "memory_id", "full_text", "trust", "valid_from")
    return [[SourceFact(**{name: row[name] for name in fields}) for row in group] for _, group in groups]


def build_generalizations(group: Sequence[SourceFact], *, count_tokens: TokenCounter) -> list[tuple[NewFact, Trust]]:
    """Return general facts that together state the facts of a group, each with its trust. Pure.

    A general fact is not longer than a summary (about 100 tokens). Its trust is the lowest trust of the facts that it
    states.
    """
    generalizations: list[tuple[NewFact, Trust]] = []
    for part, text in _split_to_fit(group, count_tokens):
        sources = tuple(source.memory_id for source in part)
        fact = NewFact(
            ref=f"general:{digest(*map(str, sources)).hex()}",
            content=text,
            valid_from=max(source.valid_from for source in part),
            subject=part[0].subject,
            attribute=part[0].attribute,
            is_generalization=True,
            sources=sources,
        )
        generalizations.append((fact, lowest_trust(source.trust for source in part)))
    return generalizations


def _split_to_fit(
    group: Sequence[SourceFact], count_tokens: TokenCounter
) -> Iterator[tuple[Sequence[SourceFact], str]]:
    """Yield consecutive parts of the group, each with a joined text that fits into a summary.

    A fact that does not fit together with the next one is left out.
    """
    start = 0
    while start < len(group):
        text, end = "", start + 1
        while end < len(group):
            longer = join_texts([s.full_text for s in group[start : end + 1]])
            if count_tokens(to_bullet(longer)) > SUMMARY_TOKENS:
                break
            text, end = longer, end + 1
        if text:
            yield group[start:end], text
        start = end


def join_texts(texts: Sequence[str]) -> str:
    """Return the texts as one line. The words with which all of them begin are written only once.

    >>> join_texts(["Ana likes tea.", "Ana likes long walks"])
    'Ana likes: tea; long walks'
    """
    lines = [one_line(text).rstrip(" .;") for text in texts]
    words = [line.split() for line in lines]
    common = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))]
    ends = [" ".join(line[len(common) :]) for line in words]
    if not common or not all(ends):
        return "; ".join(lines)
    return f"{' '.join(common)}: {'; '.join(ends)}"
