"""Search for the known items that new lines may change: by the words, names and vectors of the lines."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any
from uuid import UUID

from newton.agent.prompting.session_prompt import read_user_names
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.identity import user_rules
from newton.heart.identity.tenets import IdentityTenet
from newton.heart.reconciliation.reconciling_types import KnownItem, KnownKind, NewLine
from newton.ids import derive_model_id
from newton.memory.memory import Kind
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits, shorten_query

SQL = load("newton.agent.reconciliation", "known_items.sql")

MAX_ATTRIBUTES = 30
NEAR_PER_LINE = 6
MAX_LINKED = 30
SEARCH_LIMITS: dict[Kind, SearchLimits] = {
    "fact": SearchLimits(60, 30),
    "procedure": SearchLimits(20, 4),
    "decision": SearchLimits(20, 6),
}


async def find_known_items(scope: AgentScope, lines: Sequence[NewLine], *, zone: tzinfo | None) -> list[KnownItem]:
    """Return the facts, procedures, decisions, rules and wishes that lines of persons may change.

    The facts that the lines themselves state are among them.
    """
    told = [line for line in lines if line.source == "person"]
    searched = shorten_query("\n".join(line.text for line in told))
    search = MemorySearch(db=scope.db, agent_id=scope.agent_id, limits=SEARCH_LIMITS)
    recalled = await recall(searched, embedder=scope.embedder, search=search, is_question=False)
    line_ids = [line.memory_id for line in told]
    found = [one.memory_id for one in recalled.memories]
    async with scope.transaction() as tx:
        linked = await SQL["find_linked_facts"].fetch_all(
            tx, agent_id=scope.agent_id, line_ids=line_ids, max_rows=MAX_LINKED
        )
        near = await _find_near(tx, scope, line_ids)
        ids = list(dict.fromkeys([*(row["memory_id"] for row in linked), *near, *found]))
        rows = await SQL["list_items"].fetch_all(tx, agent_id=scope.agent_id, memory_ids=ids)
        similarities = await _list_similarities(tx, scope, line_ids, [row["memory_id"] for row in rows])
        rules = await user_rules.list_rules(tx, agent_id=scope.agent_id)
    items = [_to_item(dict(row), similarities[row["memory_id"]], zone) for row in rows]
    return [*items, *(_to_rule(rule, scope.now()) for rule in rules)]


async def list_attributes(tx: Tx, *, agent_id: UUID) -> tuple[str, ...]:
    """Return the names of the attributes of current facts, the most frequent first."""
    rows = await SQL["list_attributes"].fetch_all(tx, agent_id=agent_id, max_rows=MAX_ATTRIBUTES)
    return tuple(row["attribute"] for row in rows)


async def list_user_names(tx: Tx, *, agent_id: UUID) -> tuple[str, ...]:
    """Return the names of the user, the first one to be used in texts; none if they are not known."""
    row = await SQL["get_user_name"].fetch_one(tx, agent_id=agent_id)
    names, _ = await read_user_names(tx, agent_id=agent_id)
    return tuple(dict.fromkeys([*names, *filter(None, [row and row["user_name"]])]))


async def _find_near(tx: Tx, scope: AgentScope, line_ids: Sequence[UUID]) -> Iterable[UUID]:
    if scope.embedder is None:
        return ()
    model_id = derive_model_id(scope.embedder.identity)
    rows = await SQL["find_near_facts"].fetch_all(
        tx, agent_id=scope.agent_id, model_id=model_id, line_ids=line_ids, per_line=NEAR_PER_LINE
    )
    return [row["memory_id"] for row in rows]


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
        text=row["text"],
        day=row["stated_at"].astimezone(zone).date(),
        state="UNSETTLED" if row["is_unsettled"] else row["state"],
        trust=row["trust"],
        subject=row["subject"] or "",
        attribute=row["attribute"] or "",
        is_vouched=row["is_vouched"],
        similarities=similarities,
    )


def _to_rule(rule: IdentityTenet, now: datetime) -> KnownItem:
    return KnownItem(
        kind="rule" if rule.part == "instruction" else "wish",
        item_id=rule.tenet_id,
        text=rule.text,
        day=rule.said_on or now.date(),
        state="",
        trust="user",
    )
