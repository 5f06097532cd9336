"""Decisions of a model on pairs of facts that the comparison left open. Code limits the effect of a decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from newton.db.pool import Database
from newton.errors import ProviderError, TokenQuotaError
from newton.heart.extraction_schema import PairRelation
from newton.heart.facts.conflicts import FactPair, Settlement, list_undecided_pairs, settle
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import store

BATCH = 8  # pairs in one call
MAX_JUDGED_CHARS = 2_000  # of a fact that is sent to the judge; a longer one is not one statement

_SETTLEMENTS: Mapping[PairRelation, Settlement] = {"same": "same", "update": "newer", "compatible": "both"}


class PairJudge(Protocol):
    """A judge, such as a model, that decides how the newer fact of each pair relates to the older one."""

    async def judge_pairs(self, pairs: Sequence[FactPair]) -> Sequence[PairRelation]:
        """Return one relation for each pair, in order, or for the first pairs only.

        Raises ProviderError if the judge gives no usable answer.
        """
        ...


async def judge_undecided(db: Database, ctx: LifecycleContext, judge: PairJudge, *, limit: int) -> Counter[str]:
    """Let the judge decide up to `limit` undecided pairs; return the number of decisions by relation.

    The number of pairs left when the judge failed is returned as `failed`. Pairs without a decision stay open for the
    next run. A pair with a long text is left to a person, because an excerpt does not show whether the texts say the
    same. No transaction is open while the judge works.
    """
    async with db.transaction(ctx.agent_id) as tx:
        pairs = await list_undecided_pairs(tx, agent_id=ctx.agent_id, limit=limit)
    decided = Counter[str]()
    settled = set[UUID]()
    judged = await _leave_long(db, ctx, pairs)
    for start in range(0, len(judged), BATCH):
        batch = [pair for pair in judged[start : start + BATCH] if not settled & {pair.first_id, pair.second_id}]
        if not batch:
            continue
        try:
            relations = await judge.judge_pairs(batch)
        except ProviderError as error:
            if not isinstance(error, TokenQuotaError):
                decided["failed"] = len(judged) - start
            break
        for pair, relation in zip(batch, relations, strict=False):
            if not settled & {pair.first_id, pair.second_id}:
                await _apply(db, ctx, pair, relation)
                decided[relation] += 1
            if relation in ("same", "update"):
                settled |= {pair.first_id, pair.second_id}
    return decided


async def _leave_long(db: Database, ctx: LifecycleContext, pairs: Sequence[FactPair]) -> list[FactPair]:
    """Leave the pairs with a long text undecided, so that they are not listed again; return the others."""
    short = [pair for pair in pairs if max(len(pair.newer.text), len(pair.older.text)) <= MAX_JUDGED_CHARS]
    for pair in pairs:
        if pair not in short:
            await _apply(db, ctx, pair, "unsure")
    return short


async def _apply(db: Database, ctx: LifecycleContext, pair: FactPair, relation: PairRelation) -> None:
    settlement = _SETTLEMENTS.get(relation)
    ids = [(pair.first_id, pair.second_id)]
    async with db.transaction(ctx.agent_id) as tx:
        if settlement == "newer" and not pair.may_be_replaced:
            await store.add_links(tx, "contradicts", ids, ctx=ctx)
            settlement = None
        if settlement is None:
            await store.add_links(tx, "undecided", ids, ctx=ctx)
        else:
            await settle(tx, pair, settlement, ctx=ctx)
