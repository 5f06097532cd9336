"""Lines, known items and answers of a model for the tests of reconciliation."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from newton.heart.reconciliation.item_checks import check_items
from newton.heart.reconciliation.prompt import number_batch
from newton.heart.reconciliation.reconciling_types import (
    CheckedAnswer,
    KnownItem,
    KnownKind,
    LineSource,
    NewLine,
    ProposedItem,
    ReconcilingInput,
)
from newton.memory.memory import Trust

FRIDAY = datetime(2026, 11, 27, 12, tzinfo=UTC)
KINDS: dict[str, KnownKind] = {
    "F": "fact",
    "P": "procedure",
    "D": "decision",
    "R": "rule",
    "W": "wish",
    "O": "open",
}
TRUSTS: dict[LineSource, Trust] = {"person": "user", "assistant": "agent", "foreign": "web"}


def make_line(text: str, n: int = 0, *, user: str = "Nora", said_at: datetime = FRIDAY) -> NewLine:
    """A line written as "speaker: text". The speaker of foreign text is "foreign"; "(read)" before it marks it."""
    is_read = text.startswith("(read) ")
    speaker, _, words = text.removeprefix("(read) ").partition(": ")
    source: LineSource = "assistant" if speaker == "assistant" else "foreign" if speaker == "foreign" else "person"
    return NewLine(
        text=words,
        speaker=speaker,
        source=source,
        is_user=speaker == user,
        said_at=said_at,
        trust=TRUSTS[source],
        origin="test",
        memory_id=UUID(int=1_000 + n),
        is_read=is_read,
        foreign_kind="web page" if source == "foreign" else "",
    )


def make_known(text: str, n: int = 0) -> KnownItem:
    """A known item written as "F 2026-01-12 text", or "S1 text" for a sentence of the first line."""
    if draft := re.match(r"S(\d+) ", text):
        known = make_known(f"F {FRIDAY:%Y-%m-%d} {text[draft.end() :]}", n)
        return replace(known, drafted_by=UUID(int=999 + int(draft[1])))
    letter, day, words = text.split(" ", 2)
    return KnownItem(
        kind=KINDS[letter],
        item_id=UUID(int=n + 1),
        text=words,
        day=date.fromisoformat(day),
        state="LEARNED",
        trust="user",
    )


def make_batch(
    lines: Sequence[str],
    known: Sequence[str] = (),
    *,
    user: str = "Nora",
    aliases: tuple[str, ...] = (),
    said_at: datetime = FRIDAY,
) -> ReconcilingInput:
    batch = ReconcilingInput(
        user_name=user,
        aliases=aliases,
        known=tuple(make_known(text, n) for n, text in enumerate(known)),
        lines=tuple(
            make_line(text, n, user=user, said_at=said_at + timedelta(minutes=n)) for n, text in enumerate(lines)
        ),
        now=said_at,
    )
    return number_batch(batch)


def propose(text: str) -> ProposedItem:
    """An item written as "1 update F1,F2 @2026-11-27 ~subject: text", where all after the operation may be missing."""
    ids = r"[FPDRWOSX]\d+"
    match = re.fullmatch(rf"(\d+) (\w+)((?: {ids}(?:,{ids})*)?)(?: @(\S+))?(?: ~(\w+))?(?:: (.*))?", text)
    assert match, text
    labels = tuple(match[3].strip().split(",")) if match[3] else ()
    return ProposedItem(
        line=int(match[1]), op=match[2], ids=labels, when=match[4] or "", subject=match[5] or "", text=match[6] or ""
    )


def check(batch: ReconcilingInput, *items: str) -> CheckedAnswer:
    return check_items([propose(item) for item in items], batch)


def with_lines(batch: ReconcilingInput, **changes: object) -> ReconcilingInput:
    """The batch with these fields changed in all lines."""
    return replace(batch, lines=tuple(replace(line, **changes) for line in batch.lines))
