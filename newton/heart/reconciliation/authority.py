"""Trust of the changes that a model proposes: what a person said in their own words, or asked not to keep. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Protocol

import yaml

from newton.heart.reconciliation.line_sources import LineSources, affirms
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import DropReason, KnownItem, NewLine, ProposedItem, ReconcilingInput
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.statements.statement_selection import select_statements
from newton.heart.wills.will_reader import asks_to_forget, read_will, refers_to_earlier
from newton.memory.memory import PERSON_TIERS, Trust
from newton.text.languages import detect_language
from newton.text.patterns import has_ended, is_negated


class SpokenLine(Protocol):
    """A line of a conversation. `is_hidden` means that it has been taken out of memory already."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def is_hidden(self) -> bool: ...


def find_off_record(lines: Sequence[SpokenLine]) -> set[int]:
    """Return the numbers of the lines that must not be kept in memory.

    These are the lines in which a person asks for this; for one that speaks of another line, also the speaker's next
    line if the request announces it, else the previous line (or the next one); and the replies to all these.
    """
    numbers = {line.number for line in lines if line.is_hidden}
    for position, line in enumerate(lines):
        will = read_will(line.text).will if line.source == "person" else None
        if will is None or will.scope in ("lift", "weak") or (will.scope == "topic" and will.is_bare):
            continue
        numbers.add(line.number)
        if will.scope in ("next", "session", "last") and not will.topic:
            earlier, later = lines[:position][::-1], lines[position + 1 :]
            others = [*earlier, *later] if will.scope == "last" else later
            own = (one for one in others if one.source == "person" and one.speaker == line.speaker)
            numbers |= {one.number for one in (next(own, None),) if one}
    is_hidden = False
    for line in lines:
        is_hidden = line.number in numbers if line.source == "person" else is_hidden
        numbers |= {line.number} if is_hidden and line.source == "assistant" else set()
    return numbers


def refers_to(text: str, name: str) -> bool:
    """Return whether a text has a word of a name, or refers back to what was said.

    >>> [refers_to(text, "Dr Lindqvist") for text in ("Lindqvist? Out.", "Leave that out.", "Good morning!")]
    [True, True, False]
    """
    return bool(share_stems(list_stems(name), list_stems(text)) or refers_to_earlier(text))


_SECOND_PERSON = re.compile(r"\b(?:you|u|your|du|dich|dir|dein\w*|ihr|tu|te|puedes|toi|vous|tes)\b", re.IGNORECASE)


def lifts_wish(line: NewLine, item: KnownItem) -> bool:
    """Return whether a line tells the assistant that a wish about its answers ends, even without words of the wish.

    "You can drop the bullets thing" has no word of the wish "Keep it short".
    """
    own = split_own_words(line.text).own
    return item.kind == "wish" and bool(_SECOND_PERSON.search(own)) and _says_end(own, detect_language(own))


def says_change(line: NewLine, known: Sequence[KnownItem], text: str) -> bool:
    """Return whether a line's own words say a change of known items: an end if there is no new text.

    An end needs words of an end, two words of each item or a statement with one of each; a new text must have a word of
    the line that the known items lack.
    """
    own = split_own_words(line.text).own
    if not text:
        said = list_stems(" ".join(one.content for one in select_statements(own)))
        names = min(len(share_stems(list_stems(item.text), list_stems(own))) for item in known)
        is_stated = names > 1 or all(share_stems(list_stems(item.text), said) for item in known)
        return is_stated or affirms(own) or _says_end(own, detect_language(own))
    new = list_stems(text) - frozenset[str]().union(*(list_stems(item.text) for item in known))
    return not new or affirms(own) or bool(share_stems(new, list_stems(own)))


def _says_end(text: str, code: str) -> bool:
    return (
        has_ended(text, code)
        or is_negated(text, code)
        or asks_to_forget(text)
        or bool(_compile_cues("end").search(text))
    )


@cache
def _compile_cues(table: str) -> re.Pattern[str]:
    text = files("newton.heart.reconciliation").joinpath("end_cues.yaml").read_text(encoding="utf-8")
    return re.compile(
        "|".join(one for phrases in yaml.safe_load(text)[table].values() for one in phrases), re.IGNORECASE
    )


MODEL_TRUST: Trust = "agent"


def find_authority(batch: ReconcilingInput, number: int | None, text: str, known: Sequence[KnownItem]) -> Trust:
    """Return the trust of a change that a model proposes: the trust of line `number` if the line supports the change.

    The line must be by a person, not older than the known items and, for a text, not off the record. The names and
    numbers of `text` must occur in the line, in the lines that it continues or answers, or in the known items; and the
    line must be about each of these items, or about the text if there are none. Otherwise return the trust of a model,
    which can only raise a doubt about statements of a person.
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


HIDDEN_SHARE = 3  # a model hides at most one in so many lines of persons of a batch, and one of few


def check_hidden(proposed: Iterable[ProposedItem], batch: ReconcilingInput) -> dict[int, DropReason | None]:
    """Map the number of each line that a model proposes not to keep to None, or to the reason to keep it."""
    lines = {line.number: line for line in batch.lines}
    left = max(1, sum(line.source == "person" for line in batch.lines) // HIDDEN_SHARE)
    reasons: dict[int, DropReason | None] = {}
    for number in dict.fromkeys(item.line for item in proposed if item.op == "hide"):
        reason = _find_objection(lines.get(number), batch)
        if reason is None:
            reason, left = (None, left - 1) if left else ("too many", left)
        reasons[number] = reason
    return reasons


def _find_objection(line: NewLine | None, batch: ReconcilingInput) -> DropReason | None:
    """Return why a line must be kept, as others may have asked the model not to keep it; None if it need not be."""
    if line is None:
        return "unknown line"
    if line.source != "person":
        return "not a line of a person"
    own = [one for one in batch.lines if one.source == "person" and one.speaker == line.speaker]
    parts = [split_own_words(one.text) for one in own]
    has_others = any(one.source != "assistant" and one not in own for one in batch.lines)
    if not has_others and not any(part.foreign for part in parts):
        return None
    is_asked = any(read_will(part.own).will or asks_to_forget(part.own) for part in parts)
    return None if is_asked else "not supported by the line"
