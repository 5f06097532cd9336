"""The checks of items that no line says: known items that say the same, are merged, contradict or say nothing. Pure."""

from itertools import combinations

from newton.heart.facts.conflicts import concerns_safety
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import (
    CheckedItem,
    DropReason,
    KnownItem,
    Operation,
    ReconcilingInput,
)
from newton.heart.reconciliation.same_statements import includes, is_denied, is_fragment, leave_unreal, says_all
from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.text.languages import detect_language

MIN_COMMON = 2  # words, of facts that may be merged
MAX_FRAGMENT = 5  # words of a sentence that says nothing alone


def check_known(
    op: Operation, text: str, known: tuple[KnownItem, ...], batch: ReconcilingInput
) -> CheckedItem | DropReason:
    """Return an item that holds by the texts of the known items, or the reason why it is dropped."""
    if op in ("both", "newer"):
        is_pair = len(known) == 2 and known[1].item_id in known[0].doubtful_with
        return CheckedItem(op=op, line=None, known=known) if is_pair else "not a doubtful pair"
    if len(known) < (1 if op == "not_asserted" else 2):
        return "no known item"
    if len({item.kind for item in known}) > 1:
        return "wrong kind of known item"
    ordered, names = tuple(sorted(known, key=lambda item: item.day)), batch.user_names
    if op == "update" and _merges(text, ordered, batch):
        return CheckedItem(op=op, line=None, known=ordered, text=text, subject=ordered[-1].subject)
    pairs = combinations(known, 2)
    if op == "same" and all(includes(one.text, other.text, user_names=names) for one, other in pairs):
        return CheckedItem(op=op, line=None, known=ordered)
    return _check_empty(op, ordered, batch)


def _check_empty(op: Operation, known: tuple[KnownItem, ...], batch: ReconcilingInput) -> CheckedItem | DropReason:
    """Drop facts that say nothing; of facts that do not say the same, those beside one that says something."""
    empty = tuple(item for item in known if op != "update" and _says_nothing(item, batch))
    if empty and (len(empty) < len(known)) == (op == "same"):
        return CheckedItem(op="not_asserted", line=None, known=empty)
    return "not supported by the line" if op == "not_asserted" else "not the same statement"


def _merges(text: str, known: tuple[KnownItem, ...], batch: ReconcilingInput) -> bool:
    """Return whether a text says what facts on one thing say, and nothing else.

    It has the names, numbers and nearly all words of each. Beside foreign text, which may mislead a model to mix them
    up, nothing is merged, nor what a person must decide on.
    """
    names = batch.user_names
    is_open = all(item.kind == "fact" and not _needs_person(item) and item.drafted_by is None for item in known)
    if not is_open or len(text) > sum(len(item.text) for item in known) or _has_foreign(batch):
        return False
    if not all(says_all(text, item.text, user_names=names) for item in known):
        return False
    if not all(_are_on_same(one.text, other.text, batch) for one, other in combinations(known, 2)):
        return False
    texts = [part for item in known for part in (item.text, item.subject)]
    sources = collect_evidence([*texts, *names], code=(code := detect_language(text)))
    stems = list_stems(leave_unreal(text))
    return (
        stems == share_stems(stems, sources.stems)
        and not find_unsupported_names(text, sources)
        and not find_unsupported_numbers(text, sources, code=code)
    )


def _are_on_same(one: str, other: str, batch: ReconcilingInput) -> bool:
    """Return whether two facts share words, and not each of them has a name that the other lacks."""
    names = batch.user_names
    user = list_stems(" . ".join(list_own_names(names)))
    if len(share_stems(list_stems(one) - user, list_stems(other))) < MIN_COMMON:
        return False
    first, second = (find_unsupported_names(a, collect_evidence([b, *names])) for a, b in ((one, other), (other, one)))
    return not (first and second)


def _says_nothing(item: KnownItem, batch: ReconcilingInput) -> bool:
    """Return whether a fact is a short fragment that has no name or number but those of other known facts."""
    is_short = is_fragment(item.text) and len(item.text.split()) <= MAX_FRAGMENT and not is_denied(item.text)
    if item.kind != "fact" or item.drafted_by or item.state == "CONFIRMED" or _needs_person(item) or not is_short:
        return False
    others = [one.text for one in batch.known if one.kind == "fact" and not is_fragment(one.text)]
    sources = collect_evidence([*others, *batch.user_names])
    code = detect_language(item.text)
    return not find_unsupported_names(item.text, sources) and not find_unsupported_numbers(
        item.text, sources, code=code
    )


def _needs_person(item: KnownItem) -> bool:
    return item.state == "CORE" or item.is_vouched or concerns_safety(item.text)


def _has_foreign(batch: ReconcilingInput) -> bool:
    said = [one.text for one in batch.lines if one.source == "person"]
    return any(one.source == "foreign" for one in batch.lines) or any(split_own_words(text).foreign for text in said)
