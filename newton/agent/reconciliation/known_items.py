"""Search for the known items that new lines may change: by the words, names and vectors of the lines."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any
from uuid import UUID

from pgvector import HalfVector

from newton.agent.prompting.session_prompt import read_user_names
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.session_summary import unquoted_sentences
from newton.errors import ConflictError, NotFoundError, ProviderError
from newton.heart.identity import user_rules
from newton.heart.identity.tenets import IdentityTenet
from newton.heart.reconciliation.reconciling_types import KnownItem, KnownKind, NewLine
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.ids import derive_model_id
from newton.memory.lookup import MIN_ID_DIGITS, find_by_suffix, short_id
from newton.memory.memory import Kind
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits, shorten_query

SQL = load("newton.agent.reconciliation", "known_items.sql")

NEAR_PER_TEXT = 4
MAX_NEAR_TEXTS = 24  # lines, and sentences of lines, with which facts are compared
MIN_SPACES = 3  # of a clause with which facts are compared
MAX_PAIRS = 8  # of facts that may contradict each other
MAX_LINKED = 30
MAX_NAMED = 5
MIN_NAMED_SHARE = 0.6  # of the words of a name that the text of the named item has
_CLAUSE = re.compile(r"[;:]\s")
SEARCH_LIMITS: dict[Kind, SearchLimits] = {
    "fact": SearchLimits(60, 24),
    "procedure": SearchLimits(20, 4),
    "decision": SearchLimits(20, 6),
}


async def find_known_items(scope: AgentScope, lines: Sequence[NewLine], *, zone: tzinfo | None) -> list[KnownItem]:
    """Return what is known and messages of persons may change: facts, procedures, decisions, rules and wishes.

    The facts that the messages themselves state are among them. `zone` is the time zone of days.
    """
    person_lines = [line for line in lines if line.source == "person"]
    line_ids = [line.memory_id for line in person_lines]
    found = await _search(scope, "\n".join(line.text for line in person_lines))
    vectors = await _embed(scope, [line.text for line in person_lines if not line.is_read])
    async with scope.transaction() as tx:
        linked = await SQL["find_linked_facts"].fetch_all(
            tx, agent_id=scope.agent_id, line_ids=line_ids, max_rows=MAX_LINKED, now=scope.now()
        )
        near = await _find_near(tx, scope, vectors)
        ids = list(dict.fromkeys([*(row["memory_id"] for row in linked), *near, *found]))
        pairs = await _list_pairs(tx, scope, ids)
        items = await _load_items(tx, scope, list(dict.fromkeys([*ids, *pairs])), line_ids, zone=zone)
        return [replace(one, doubtful_with=frozenset(pairs[one.item_id])) for one in items]


async def find_named_item(
    scope: AgentScope, name: str, lines: Sequence[NewLine], *, kinds: Collection[KnownKind], zone: tzinfo | None
) -> KnownItem:
    """Return the known item of these kinds with this id, or the end of it, or whose text has most of these words.

    `lines` are the messages for the similarities of the item, `zone` is the time zone of days. Raises NotFoundError if
    there is none, and ConflictError if several fit as well.
    """
    digits = name.strip().lstrip("#").lower().replace("-", "")
    has_id = is_id(digits)
    line_ids = [line.memory_id for line in lines if line.source == "person"]
    found = [] if has_id else await _search(scope, name)
    async with scope.transaction() as tx:
        if has_id and (memory_id := await find_by_suffix(tx, digits, agent_id=scope.agent_id)):
            found = [memory_id]
        items = [one for one in await _load_items(tx, scope, found, line_ids, zone=zone) if one.kind in kinds]
    if has_id:
        items = [one for one in items if one.item_id.hex.endswith(digits)]
    elif stems := list_stems(name):
        shares = {one.item_id: len(share_stems(stems, list_stems(one.text))) / len(stems) for one in items}
        best = max(shares.values(), default=0.0)
        items = [one for one in items if shares[one.item_id] == best >= MIN_NAMED_SHARE]
    if not items:
        hint = (
            "What the user says is learnt without a call, so it may be changed already. `recall` shows what is known."
        )
        raise NotFoundError("No current item has this id or these words.", hint=hint)
    if len(items) > 1:
        texts = "; ".join(f"#{short_id(one.item_id)} {one.text}" for one in items[:MAX_NAMED])
        raise ConflictError(f"Several items fit {name!r}: {texts}", hint="Give the id of one.")
    return items[0]


def is_id(digits: str) -> bool:
    """Return whether a name is the end of an id, without dashes and in lower case."""
    return len(digits) >= MIN_ID_DIGITS and set(digits) <= set("0123456789abcdef")


async def _search(scope: AgentScope, text: str) -> list[UUID]:
    search = MemorySearch(db=scope.db, agent_id=scope.agent_id, limits=SEARCH_LIMITS)
    recalled = await recall(shorten_query(text), embedder=scope.embedder, search=search, is_question=False)
    return [one.memory_id for one in recalled.memories]


async def _load_items(
    tx: Tx, scope: AgentScope, memory_ids: Sequence[UUID], line_ids: Sequence[UUID], *, zone: tzinfo | None
) -> list[KnownItem]:
    """Return the current items among these memories, with their similarities to the lines, and all rules."""
    rows = await SQL["list_items"].fetch_all(tx, agent_id=scope.agent_id, memory_ids=memory_ids)
    similarities = await _list_similarities(tx, scope, line_ids, [row["memory_id"] for row in rows])
    rules = await user_rules.list_rules(tx, agent_id=scope.agent_id)
    items = [_to_item(dict(row), similarities[row["memory_id"]], zone) for row in rows]
    return [*items, *(_to_rule(rule, scope.now()) for rule in rules)]


async def list_user_names(tx: Tx, scope: AgentScope) -> tuple[str, ...]:
    """Return the names of the user, the first one to be used in texts; none if they are not known."""
    names, _ = await read_user_names(tx, scope)
    async for agent_id in scope.visit_levels(tx):
        row = await SQL["get_user_name"].fetch_one(tx, agent_id=agent_id)
        names += filter(None, [row["user_name"] if row else None])
    return tuple(dict.fromkeys(names))


async def _embed(scope: AgentScope, texts: Sequence[str]) -> list[HalfVector]:
    """Return the vectors of texts, their sentences and longer clauses; none if the embedder fails."""
    sentences = [sentence for text in texts for sentence in (text, *unquoted_sentences(text))]
    clauses = [one for text in sentences for one in _CLAUSE.split(text) if one.count(" ") >= MIN_SPACES]
    parts = [*sentences, *clauses]
    try:
        vectors = await scope.embedder.embed(list(dict.fromkeys(parts))[:MAX_NEAR_TEXTS]) if scope.embedder else []
    except ProviderError:
        return []
    return [HalfVector(vector) for vector in vectors]


async def _find_near(tx: Tx, scope: AgentScope, vectors: Sequence[HalfVector]) -> Iterable[UUID]:
    if scope.embedder is None or not vectors:
        return ()
    model_id = derive_model_id(scope.embedder.identity)
    rows = await SQL["find_near_facts"].fetch_all(
        tx, agent_id=scope.agent_id, model_id=model_id, vectors=vectors, max_rows=NEAR_PER_TEXT, now=scope.now()
    )
    return [row["memory_id"] for row in rows]


async def _list_pairs(tx: Tx, scope: AgentScope, memory_ids: Sequence[UUID]) -> defaultdict[UUID, set[UUID]]:
    """Return which facts may contradict each other by a classifier, those of these facts first."""
    pairs = defaultdict[UUID, set[UUID]](set)
    for row in await SQL["list_doubtful_pairs"].fetch_all(
        tx, agent_id=scope.agent_id, memory_ids=memory_ids, max_rows=MAX_PAIRS
    ):
        pairs[row["memory_id"]].add(row["other_id"])
        pairs[row["other_id"]].add(row["memory_id"])
    return pairs


async def _list_similarities(
    tx: Tx, scope: AgentScope, line_ids: Sequence[UUID], fact_ids: Sequence[UUID]
) -> defaultdict[UUID, dict[UUID, float]]:
    """Return the cosine similarity of each fact to each line, by the id of the fact and that of the line."""
    similarities = defaultdict[UUID, dict[UUID, float]](dict)
    if scope.embedder is not None:
        model_id = derive_model_id(scope.embedder.identity)
        for row in await SQL["list_similarities"].fetch_all(
            tx, agent_id=scope.agent_id, model_id=model_id, line_ids=line_ids, fact_ids=fact_ids
        ):
            similarities[row["fact_id"]][row["line_id"]] = row["similarity"]
    return similarities


def _to_item(row: Mapping[str, Any], similarities: Mapping[UUID, float], zone: tzinfo | None) -> KnownItem:
    kind: KnownKind = "decision" if row["is_decision"] else row["kind"]
    return KnownItem(
        kind=kind,
        item_id=row["memory_id"],
        text=_join_steps(row["text"]) if kind == "procedure" else row["text"],
        day=row["stated_at"].astimezone(zone).date(),
        state="UNSETTLED" if row["is_unsettled"] else row["state"],
        trust=row["trust"],
        subject=row["subject"] or "",
        attribute=row["attribute"] or "",
        is_vouched=row["is_vouched"],
        similarities=similarities,
    )


def _join_steps(text: str) -> str:
    """Return the lines of a procedure in the form "name: step; step" in which the model gives them."""
    title, *steps = filter(None, (line.strip() for line in text.splitlines()))
    return f"{title.rstrip(':')}: {'; '.join(steps)}" if steps else title


def _to_rule(rule: IdentityTenet, now: datetime) -> KnownItem:
    return KnownItem(
        kind="rule" if rule.part == "instruction" else "wish",
        item_id=rule.tenet_id,
        text=rule.text,
        day=rule.said_on or now.date(),
        state="",
        trust="user",
    )
