"""Whose act a change is that a model proposes: the person's whose line says it, or the model's. Pure."""

from collections.abc import Sequence

from newton.heart.reconciliation.line_sources import LineSources
from newton.heart.reconciliation.off_record import find_off_record
from newton.heart.reconciliation.own_words import lifts_wish
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine, ReconcilingInput
from newton.memory.memory import PERSON_TIERS, Trust

MODEL_TRUST: Trust = "agent"


def find_authority(batch: ReconcilingInput, number: int | None, text: str, known: Sequence[KnownItem]) -> Trust:
    """Return the trust with which a model's change acts: that of the line with this number if it says the change.

    The line must be a person's, untainted, and, for a text, not off the record. The names and numbers of `text` must
    occur in it, in what it continues or answers, or in the known items that the change concerns, and the line must be
    about each of these items, or about the text if there are none. Otherwise the change acts with the trust of a model,
    which can only contest what a person said.
    """
    line = next((one for one in batch.lines if one.number == number), None)
    if line is None or line.source != "person" or line.trust not in PERSON_TIERS:
        return MODEL_TRUST
    sources = LineSources(batch, frozenset(find_off_record(batch.lines)))
    if text and (line.number in sources.hidden or sources.find_unsupported(text, line, known)):
        return MODEL_TRUST
    is_about = all(sources.is_about(line, item, text) or lifts_wish(line, item) for item in known)
    is_about = is_about if known else sources.is_grounded(text, line)
    return line.trust if is_about and not _is_older(batch, line, known) else MODEL_TRUST


def _is_older(batch: ReconcilingInput, line: NewLine, known: Sequence[KnownItem]) -> bool:
    return any(batch.day_of(line) < item.day for item in known)
