"""Checks of the changes (items) that a model proposes: each is kept, weakened or dropped by itself. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from newton.heart.facts.conflicts import concerns_safety
from newton.heart.identity.rule_plan import list_rulings
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.identity.user_names import find_names
from newton.heart.reconciliation import citations
from newton.heart.reconciliation.asserted_changes import may_add, may_say_change, tells_plainly
from newton.heart.reconciliation.authority import check_hidden, find_off_record, lifts_wish, says_change
from newton.heart.reconciliation.derived_days import parse_when
from newton.heart.reconciliation.known_checks import CHANGES, UPKEEP, check_known, find_repeated, is_denied, says_all
from newton.heart.reconciliation.line_sources import MAX_NOVELTY, LineSources, affirms
from newton.heart.reconciliation.quoted_text import is_quoted, split_own_words
from newton.heart.reconciliation.reconciling_types import (
    OPERATIONS,
    SHOWN_OPERATIONS,
    CheckedAnswer,
    CheckedItem,
    DroppedItem,
    DropReason,
    KnownItem,
    KnownKind,
    NewLine,
    Operation,
    ProposedItem,
    ReconcilingInput,
    Weakening,
)
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.speakers import may_supersede
from newton.heart.statements.commitment import is_unreal
from newton.heart.statements.statement_selection import select_statements
from newton.memory.memory import PERSON_TIERS, TRUST_TIERS
from newton.text.questions import is_only_question

MAX_TEXT = 500  # characters
MAX_PROCEDURE = 800
MIN_ENDS = 3  # known items that a batch may always end
ENDS_SHARE = 3  # a batch ends at most one in so many of the known items that it was shown
MAX_RULE_GROWTH = 1.5  # of the wording of a rule beside the text, before the text takes its place
MIN_OWN_WORDS = 2  # of a new statement, for its line to stand in for a text with inventions

_WITH_TEXT = frozenset[Operation]({"add", "update", "unsure", "rule", "wish", "decision", "procedure", "episode"})
# What a line that only asks something does not say.
_STATED = frozenset[Operation]({"add", "update", "end", "retract", "decision", "procedure"})
_ENDS = frozenset[Operation]({"end", "retract", "not_asserted"})
_PAIRED = frozenset[Operation]({"same", "both", "newer"})
_USER_KINDS = frozenset[KnownKind]({"rule", "wish"})
_CONTESTING = frozenset[Weakening](
    {"known item of higher trust", "known item needs a person", "line does not say the change"}
)
# The kinds of known items of which a new item is an update, if it names them.
_REPLACED_KINDS: Mapping[Operation, frozenset[KnownKind]] = {
    "rule": _USER_KINDS,
    "wish": _USER_KINDS,
    "decision": frozenset({"decision"}),
    "procedure": frozenset({"procedure"}),
}


def check_items(proposed: Iterable[ProposedItem], batch: ReconcilingInput) -> CheckedAnswer:
    """Return the items that the lines of the batch support, and the others with the reason why they are dropped.

    An item has the trust, speaker and time of its line, so it cannot do more than the line could. A text with names or
    numbers that no person said is replaced by the person's own words.
    """
    proposed = list(proposed)
    hidden = check_hidden(proposed, batch)
    kept_out = {*find_off_record(batch.lines), *(number for number, reason in hidden.items() if reason is None)}
    checker = _ItemChecker(batch, LineSources(batch, frozenset(kept_out)), hidden, _find_named(proposed, batch))
    if called := checker.find_called(proposed):
        batch = replace(batch, user_name=called[0], aliases=tuple(dict.fromkeys([*called[1:], *batch.user_names])))
        checker = replace(checker, batch=batch, sources=replace(checker.sources, batch=batch))
    kept: list[tuple[ProposedItem, CheckedItem]] = []
    dropped: list[DroppedItem] = []
    max_kept = 2 * len(batch.lines) + len(batch.known)
    for item in proposed:
        result = checker.check(item) if len(kept) < max_kept else "too many"
        if isinstance(result, CheckedItem):
            kept.append((item, result))
        else:
            dropped.append(DroppedItem(item=item, reason=result))
    repeated = find_repeated([checked for _, checked in kept])
    dropped += (DroppedItem(item=item, reason="repeated") for n, (item, _) in enumerate(kept) if n in repeated)
    remaining = (checked for n, (_, checked) in enumerate(kept) if n not in repeated)
    ordered = _limit_ends(sorted(remaining, key=lambda one: one.line.number if one.line else 0), batch)
    return CheckedAnswer(kept=tuple(ordered), dropped=tuple(dropped), user_names=batch.user_names)


class _DroppedError(Exception):
    """Raised by a check to drop an item, with the reason."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason)
        self.reason: DropReason = reason


@dataclass(frozen=True, slots=True)
class _ItemChecker:
    batch: ReconcilingInput
    sources: LineSources
    hidden: Mapping[int, DropReason | None]
    named: Mapping[int, Sequence[KnownItem]]  # by a line, the known items that the answer names on it

    def check(self, item: ProposedItem) -> CheckedItem | DropReason:
        try:
            return self._check_hiding(item) if item.op == "hide" else self._check(item)
        except _DroppedError as error:
            return error.reason

    def find_called(self, proposed: Iterable[ProposedItem]) -> list[str]:
        """Return the names by which the user asks to be called, from their new rules and wishes."""
        found = [self.check(item) for item in proposed if item.op in _USER_KINDS]
        own = [one for one in found if isinstance(one, CheckedItem) and not one.needs_approval]
        return find_names(one.text for one in own)

    def _check(self, item: ProposedItem) -> CheckedItem:
        """Return the checked item. Raises _DroppedError, with the reason, for one that is not supported."""
        op = SHOWN_OPERATIONS.get(item.op, item.op)
        if op not in OPERATIONS:
            raise _DroppedError("unknown operation")
        known = self._find_known(item.ids)
        if op in _PAIRED or (not item.line and op in UPKEEP and not any(one.drafted_by for one in known)):
            result = check_known("same" if op == "confirm" else op, item.text, known, self.batch)
            if not isinstance(result, CheckedItem):
                raise _DroppedError(result)
            return result
        if op == "not_asserted":
            return self._check_assertion(item, known)
        line = self._find_line(item.line, op)
        own = split_own_words(line.text).own
        if op in _STATED and (is_only_question(own) or is_unreal(own)):
            raise _DroppedError("not supported by the line")
        op, known = _resolve_operation(op, known)
        self._check_speaker(op, line, known)
        if op in CHANGES:
            known = self._check_target(op, line, known, item.text)
        if op in _ENDS and self.sources.borrows(item.text, line, known):
            raise _DroppedError("not supported by the line")
        return self._build(op, item, line, known)

    def _find_known(self, ids: Sequence[str]) -> tuple[KnownItem, ...]:
        labels = {item.label: item for item in self.batch.known}
        if any(label not in labels for label in ids):
            raise _DroppedError("unknown known item")
        return tuple(labels[label] for label in ids)

    def _find_line(self, number: int, op: Operation) -> NewLine:
        """Return the new line of a person for an item; for an episode, the last one up to it. Drop other items."""
        lines = {line.number: line for line in self.batch.lines}
        line = lines.get(number)
        if line is None:
            raise _DroppedError("unknown line")
        if op == "episode":
            persons = (one for one in reversed(self.batch.lines) if one.source == "person" and one.number <= number)
            line = next(persons, line)
        if line.is_read:
            raise _DroppedError("line already read")
        if line.source != "person":
            raise _DroppedError("not a line of a person")
        if line.number in self.sources.hidden and op != "retract":
            raise _DroppedError("off the record")
        return line

    def _check_assertion(self, item: ProposedItem, known: tuple[KnownItem, ...]) -> CheckedItem:
        """Check an item which says that a line does not assert facts; that they are from the line is checked later."""
        drafted = {one.drafted_by for one in known}
        by_draft = (one for one in self.batch.lines if {one.memory_id} == drafted)
        by_number = (one for one in self.batch.lines if one.number == item.line)
        line = next(by_draft, None) or next(by_number, None)
        if line is None or line.source != "person":
            raise _DroppedError("unknown line" if line is None else "not a line of a person")
        if not known or any(one.kind != "fact" for one in known):
            raise _DroppedError("wrong kind of known item" if known else "no known item")
        about = tuple(one for one in known if not (concerns_safety(one.text) or tells_plainly(line.text, one.text)))
        if not about:
            raise _DroppedError("not supported by the line")
        return CheckedItem(op="not_asserted", line=line, known=about)

    def _check_hiding(self, item: ProposedItem) -> CheckedItem:
        """Check that a line, and the facts that it is about, may be taken out of memory."""
        if reason := self.hidden[item.line]:
            raise _DroppedError(reason)
        line = next(one for one in self.batch.lines if one.number == item.line)
        about = (one for one in self._find_known(item.ids) if one.kind == "fact" and self.sources.is_about(line, one))
        return CheckedItem(op="hide", line=line, known=tuple(about))

    def _check_speaker(self, op: Operation, line: NewLine, known: Sequence[KnownItem]) -> None:
        """Drop changes of rules and wishes by other persons than the user. Their new rules are kept for approval."""
        if op in CHANGES and not line.is_user and any(item.kind in _USER_KINDS for item in known):
            raise _DroppedError("not a line of the user")
        if op == "procedure" and (line.trust not in PERSON_TIERS or line.is_imported):
            raise _DroppedError("not a line of a person")

    def _check_target(
        self, op: Operation, line: NewLine, known: Sequence[KnownItem], text: str
    ) -> tuple[KnownItem, ...]:
        """Return the known items that the line is about, and those that share words with one of them."""
        if not known:
            raise _DroppedError("no known item")
        has_foreign = any(one.source == "foreign" for one in self.batch.lines)
        if has_foreign and op != "confirm" and not says_change(line, known, text):
            raise _DroppedError("not supported by the line")
        if any(self.batch.day_of(line) < item.day for item in known):
            raise _DroppedError("older than the known item")
        about = [item for item in known if self.sources.is_about(line, item, text) or lifts_wish(line, item)]
        if not about:
            raise _DroppedError("line not about the known item")
        return tuple(one for one in known if any(one is item or self.sources.are_related(one, item) for item in about))

    def _build(self, op: Operation, item: ProposedItem, line: NewLine, known: tuple[KnownItem, ...]) -> CheckedItem:
        weakened: list[Weakening] = []
        text, title = self._check_text(op, item, line, known, weakened)
        is_wish = op in _USER_KINDS or any(one.kind in _USER_KINDS for one in known)
        when = None if is_wish and op != "end" else self._check_when(item.when, line, known, weakened)
        contests = op in ("update", "end", "retract") and self._must_contest(line, known, text, weakened)
        if op == "add" and not may_add(line, text, self.batch.known, self.batch.user_names):
            raise _DroppedError("not supported by the line")
        subject = item.subject
        if subject and self.sources.find_unsupported(subject, line, known):
            subject = ""
        checked = CheckedItem(
            op=op,
            line=line,
            known=known,
            text=text,
            title=title,
            subject=subject[:MAX_TEXT],
            when=when,
            contests=contests or op == "unsure",
            weakened=tuple(weakened),
        )
        is_free = not is_wish or op == "confirm" or _speaks_for_user(checked, item.text, self.batch.user_names)
        return replace(checked, needs_approval=not is_free)

    def _check_text(
        self, op: Operation, item: ProposedItem, line: NewLine, known: Sequence[KnownItem], weakened: list[Weakening]
    ) -> tuple[str, str]:
        """Return text and title of an item; the person's words replace invented details (noted in `weakened`)."""
        if op not in _WITH_TEXT:
            return "", ""
        if not item.text and op != "unsure":
            raise _DroppedError("no text")
        if len(item.text) > (MAX_PROCEDURE if op == "procedure" else MAX_TEXT):
            raise _DroppedError("text too long")
        if op in _USER_KINDS:
            return self._check_wish(item.text, line)
        is_said = self.sources.says_news(item.text, line, known) if op in CHANGES else True
        if not is_said or (op not in CHANGES and not self._widen(op).is_grounded(item.text, line)):
            raise _DroppedError("not supported by the line")
        if self._is_supported(op, item.text, line, known):
            return item.text, ""
        if not self._can_stand_in(op, item.text, line, known):
            raise _DroppedError("not supported by the line")
        weakened.append("words of the line instead of the text")
        return self.sources.pick_wording(line, item.text), ""

    def _is_supported(self, op: Operation, text: str, line: NewLine, known: Sequence[KnownItem]) -> bool:
        """Return whether a text has no invented or foreign details. For an episode, all lines and known items count."""
        if op == "episode":
            sources = self._widen(op)
            return not (sources.borrows(text, line, ()) or sources.find_unsupported(text, line, self.batch.known))
        linked = [one for one in self.named[line.number] if one not in known and self.sources.is_about(line, one)]
        if not text or self.sources.borrows(text, line, known):
            return False
        if self.sources.find_unsupported(text, line, [*known, *linked]):
            return False
        return op == "unsure" or self.sources.measure_novelty(text, line, known) <= MAX_NOVELTY

    def _widen(self, op: Operation) -> LineSources:
        """Return the sources of an item; those of an episode include all lines before its line."""
        return replace(self.sources, max_earlier=len(self.batch.lines)) if op == "episode" else self.sources

    def _check_wish(self, text: str, line: NewLine) -> tuple[str, str]:
        """Return the wording of a rule or wish, and the model's text as its title ("" if it is not supported).

        The wording is the person's own if the line has words of the text, unless it is much longer than a supported
        text that is negated alike.
        """
        # how the user is called is grounded by the name alone
        is_grounded = self.sources.is_grounded(text, line) or share_stems(
            list_stems(text), list_stems(split_own_words(line.text).own)
        )
        if not is_grounded or self.sources.borrows(text, line, ()):
            raise _DroppedError("not supported by the line")
        is_supported = not self.sources.find_unsupported(text, line, ())
        if self.sources.count_own_words(text, line):
            wording = self.sources.pick_wording(line, text)
            called = [] if find_names([wording]) else find_names([text])  # the name may be in another sentence
            if called and is_supported and all(name in split_own_words(line.text).own for name in called):
                return text, text
            if is_supported and len(wording) > MAX_RULE_GROWTH * len(text) and is_denied(text) >= is_denied(wording):
                return text, text
            return wording, text if is_supported else ""
        if not is_supported:
            raise _DroppedError("not supported by the line")
        return text, text

    def _can_stand_in(self, op: Operation, text: str, line: NewLine, known: Sequence[KnownItem]) -> bool:
        """Return whether the line itself can be stored in place of a text with invented details.

        The line must be no question, and have words of the text or of the known item that it changes. If the text has
        words of foreign text, the line must be a statement worth remembering.
        """
        if op == "episode" or line.text.rstrip(' "”»)').endswith(("?", "？")):
            return False
        if self.sources.borrows(text, line, known) and not select_statements(self.sources.pick_wording(line, text)):
            return False
        return self.sources.count_own_words(text, line) >= MIN_OWN_WORDS or any(
            self.sources.uses_words_of(item, [line]) for item in known
        )

    def _check_when(
        self, when: str, line: NewLine, known: Sequence[KnownItem], weakened: list[Weakening]
    ) -> date | None:
        if not when:
            return None
        parsed, derived = parse_when(when), self.sources.derive_days(line, known)
        if parsed and parsed[1] and parsed[0] == self.batch.day_of(line).replace(day=1):
            return None  # in this month: the day of the line is the nearest that is known
        if parsed and (derived.has_month(parsed[0]) if parsed[1] else derived.has_day(parsed[0])):
            return parsed[0]
        weakened.append("day left out")
        return None

    def _must_contest(self, line: NewLine, known: Sequence[KnownItem], text: str, weakened: list[Weakening]) -> bool:
        """Return whether the line only makes the known items unsettled; the reasons are added to `weakened`."""
        if any(not _may_change(line, item) for item in known):
            weakened.append("known item of higher trust")
        if any(item.kind == "fact" and (item.state == "CORE" or concerns_safety(item.text)) for item in known):
            weakened.append("known item needs a person")
        if not may_say_change(line, known, text, self.batch.user_names):
            weakened.append("line does not say the change")
        return not _CONTESTING.isdisjoint(weakened)


def _speaks_for_user(item: CheckedItem, text: str, names: Sequence[str]) -> bool:
    """Return whether the user states a rule or wish, or changes one, in this conversation.

    What is only asked, quoted or reported, or a line without a rule, does not. `text` is the text of the model.
    """
    assert item.line
    line, texts = item.line, [item.text, text]
    own = split_own_words(line.text).own
    if not line.is_user or line.is_imported or is_quoted(texts[0], line.text):
        return False
    is_request = bool(detect_instructions(own)) or not is_only_question(own)
    if not is_request or any(citations.only_reports(own, one, user_names=names) for one in texts):
        return False
    called = find_names([text])
    is_known = any(one.kind in _USER_KINDS for one in item.known) or (called and all(one in own for one in called))
    stems = list_stems(" . ".join(texts))
    is_told = any(share_stems(stems, list_stems(one)) for one in list_rulings(own))
    is_told |= says_all(own, text, user_names=names) or (affirms(own) and not select_statements(own))
    return bool(is_known or is_told)


def _find_named(proposed: Sequence[ProposedItem], batch: ReconcilingInput) -> Mapping[int, Sequence[KnownItem]]:
    """Return by line the known items that any proposal for the line names; one may update what another ends."""
    by_label, named = {item.label: item for item in batch.known}, defaultdict[int, list[KnownItem]](list)
    for item in proposed:
        named[item.line] += filter(None, map(by_label.get, item.ids))
    return named


def _resolve_operation(op: Operation, known: tuple[KnownItem, ...]) -> tuple[Operation, tuple[KnownItem, ...]]:
    """Return an update in place of a new item that names known items of its kind.

    Otherwise, only known items that are sentences of new lines remain: the new item replaces them.
    """
    if op in CHANGES:
        return op, known
    replaced = tuple(item for item in known if item.kind in _REPLACED_KINDS.get(op, frozenset()))
    if replaced:
        return "update", replaced
    return op, tuple(item for item in known if item.drafted_by and op != "episode")


def _may_change(line: NewLine, item: KnownItem) -> bool:
    if item.kind in _USER_KINDS:
        return TRUST_TIERS.index(line.trust) <= TRUST_TIERS.index(item.trust)
    return may_supersede(line.trust, known=item.trust, is_confirmed=item.is_vouched)


def _limit_ends(items: Sequence[CheckedItem], batch: ReconcilingInput) -> list[CheckedItem]:
    """Make ends of known items mere doubts if there are too many, as a misled model proposes."""
    ended = {one.item_id for item in items if item.op in _ENDS for one in item.known}
    if len(ended) <= max(MIN_ENDS, math.ceil(len(batch.known) / ENDS_SHARE)):
        return list(items)
    return [_contest(item) if item.op in _ENDS else item for item in items]


def _contest(item: CheckedItem) -> CheckedItem:
    return replace(item, contests=True, weakened=(*item.weakened, "too many ended at once"))
