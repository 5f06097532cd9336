"""The versions of a decision record: decisions whose refs are the ref of the record, "#" and a hash of its text."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.brain import ledger
from newton.brain.codec import NewDecision
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import WriteContext

SQL = load("newton.brain", "decision_versions.sql")

RECORD_REFS = "^adr:[0-9a-f]{12}:"  # a regular expression of the refs of decision records


class DecisionVersion(NamedTuple):
    """A stored decision with a ref: a version of a decision record, or a decision without versions."""

    memory_id: UUID
    ref: str
    decided_at: datetime


async def list_versions(tx: Tx, refs: Sequence[str], *, ctx: WriteContext) -> Mapping[str, Sequence[DecisionVersion]]:
    """Return the stored decisions that each ref names; those of a decision record are its versions, the latest last."""
    versions = defaultdict[str, list[DecisionVersion]](list)
    rows = await SQL["list_versions"].fetch_all(tx, agent_id=ctx.agent_id, refs=refs, records=RECORD_REFS)
    for name, *columns in rows:
        versions[name].append(DecisionVersion(*columns))
    return versions


async def number_versions(tx: Tx, new_decisions: Sequence[NewDecision], *, ctx: WriteContext) -> list[NewDecision]:
    """Return the decisions with the refs and times under which to record them.

    The latest version of a record keeps its ref and the time stored for it. A record that has the text of an earlier
    version again becomes a new version, whose ref ends with a number. Other decisions are returned unchanged.
    """
    await ledger.lock_chain(tx, agent_id=ctx.agent_id)  # so that no concurrent transaction adds a version
    records = [_get_record(one) for one in new_decisions]
    versions = await list_versions(tx, sorted(set(filter(None, records))), ctx=ctx)
    return [_number(one, versions.get(record, ())) for one, record in zip(new_decisions, records, strict=True)]


def _get_record(decision: NewDecision) -> str:
    """Return the ref of the decision record that a decision is a version of, or ""."""
    ref = decision.draft.ref or ""
    return ref.rpartition("#")[0] if re.match(RECORD_REFS, ref) else ""


def _number(decision: NewDecision, versions: Sequence[DecisionVersion]) -> NewDecision:
    equal = [version for version in versions if decision.draft.ref and version.ref.startswith(decision.draft.ref)]
    if not equal:
        return decision
    if equal[-1] == versions[-1]:
        draft = replace(decision.draft, ref=equal[-1].ref, at=equal[-1].decided_at)
    else:
        draft = replace(decision.draft, ref=f"{decision.draft.ref}.{len(equal) + 1}")
    return replace(decision, draft=draft)
