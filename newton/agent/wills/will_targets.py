"""Search for the statements that a person asks to forget."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import StoredMessage
from newton.errors import ProviderError
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.statements.clauses import refers_to_other
from newton.heart.wills.inferred_wills import POSSIBLE_MIN, rate_wish
from newton.heart.wills.inferred_wills import SURE_MIN as SURE_WILL_MIN
from newton.heart.wills.meant_statements import (
    MAYBE_MIN,
    MEANT_MIN,
    NAMED_MIN,
    SURE_MIN,
    list_parts,
    list_spans,
    means_all,
    names_another,
    rate_statements,
)
from newton.heart.wills.will_reader import (
    MIN_TOPIC_SHARE,
    Will,
    is_about,
    is_clause,
    is_of_kind,
    means_conversation,
    names_kind,
)
from newton.ids import derive_model_id
from newton.memory.tombstones import FORGOTTEN, WITHHELD
from newton.providers.embedding import Embedder
from newton.text.languages import ENGLISH, detect_language
from newton.text.questions import is_only_question
from newton.text.time_expressions import find_time_ranges
from newton.text.words import is_continuation, refers_back

SQL = load("newton.agent.wills", "will_targets.sql")

MAX_FOUND = 200  # latest messages of a person that share a word with a topic
MIN_PREFIX = 4  # characters of a stem by which messages are found
MIN_SIMILARITY, MAX_DISTANCE, MAX_NEAR = 0.35, 0.1, 3  # of vectors to a topic of which no message has a word
MIN_PARTIAL_SHARE = 0.5  # of the words of a topic, for what is only shown
MAX_LAST, MAX_READ, MAX_OTHERS = 8, 3, 12  # statements: the last ones, others that are read at once, and all others
MIN_ALL = 3  # last statements that are all meant, from which on all of the conversation is
ASKED_MIN = 0.64  # of a statement that a will that may be none may mean, for a question
OWN_MIN, VEILED_MIN = 0.4, 0.9  # of a statement, if a wish may mean its own message, or surely does
MAX_SHOWN = 20  # statements to choose from
_OWNER = re.compile(r"^.*['’]s\s+|\s+(?:of|von|de|di|van)\s.*$", re.IGNORECASE)


class ForgetTarget(NamedTuple):
    """A message or another memory that a person asks to forget; `kept` are the numbers of the parts that stay.

    If it `is_meant`, the reader of messages takes it for what the will means.
    """

    memory_id: UUID
    text: str
    kept: tuple[int, ...] = ()
    is_meant: bool = False


class FoundTargets(NamedTuple):
    """The statements that a person may mean. If it is not sure, the person chooses, also among one."""

    targets: Sequence[ForgetTarget]
    is_sure: bool


async def find_targets(
    tx: Tx, will: Will, place: StoredMessage, *, embedder: Embedder | None, ctx: LifecycleContext
) -> FoundTargets:
    """Return what a message at `place` asks to forget: statements that its person made before."""
    key: dict[str, Any] = {"agent_id": ctx.agent_id, "session_id": place.session_id, "position": place.position}
    ranges = find_time_ranges(will.topic, now=place.message.said_at.astimezone()) if will.scope == "time" else []
    if ranges:
        rows = await SQL["list_said"].fetch_all(
            tx, **key, patterns=None, since=ranges[0].start, until=ranges[0].end, max_rows=MAX_FOUND
        )
        return FoundTargets([ForgetTarget(row["memory_id"], row["content"]) for row in rows], is_sure=True)
    named = await _find_named(tx, will, key, embedder) if will.forgets else FoundTargets([], is_sure=False)
    return await _choose_meant(tx, will, named, key) if detect_language(will.request) == ENGLISH else named


async def _find_named(tx: Tx, will: Will, key: Mapping[str, Any], embedder: Embedder | None) -> FoundTargets:
    """Return the statements of all conversations that have the words of a will, else the last statement."""
    if will.scope == "topic" or (will.scope == "weak" and will.certainty < 1):
        if not will.topic:
            return FoundTargets([], is_sure=False)
        found = await _find_topic(tx, will.topic, key)
        found = found if found.targets else (await _find_alike(tx, will.topic, key))._replace(is_sure=False)
        return found if found.targets or not embedder else await _find_near(tx, will.topic, key, embedder)
    if will.scope in ("last", "weak") and will.topic:
        found = await _find_alike(tx, will.topic, key)
        return found._replace(is_sure=found.is_sure and will.scope == "last")
    row = await SQL["list_last"].fetch_one(tx, **key, until=key["position"], max_rows=1)
    return FoundTargets([ForgetTarget(row["memory_id"], row["content"])] if row else [], is_sure=True)


async def _choose_meant(tx: Tx, will: Will, named: FoundTargets, key: Mapping[str, Any]) -> FoundTargets:
    """Return those of the last and the named statements that a request may mean by what the reader of messages says.

    The last statements are read together, so that "the second one" has a meaning, and the others a few at a time. If
    the last ones are all meant, so are the others of the conversation. Without any, the person chooses among the named.
    """
    last = await SQL["list_last"].fetch_all(tx, **key, until=key["position"], max_rows=MAX_SHOWN)
    said = [ForgetTarget(row["memory_id"], row["content"]) for row in last][::-1]
    said = [one for one in said if will.scope != "topic" or not is_only_question(one.text)]
    others = [one for one in named.targets if one.memory_id not in {own.memory_id for own in said}][:MAX_OTHERS]
    groups = [said[-MAX_LAST:], *(others[n : n + MAX_READ] for n in range(0, len(others), MAX_READ))]
    groups = [group for group in groups if group]
    rated = rate_statements([[one.text for one in group] for group in groups], will.request)
    is_all = will.scope != "weak" and means_conversation(will.request)
    may_be_all = len(said) >= MIN_ALL and not names_another(will.request, [one.text for one in said])
    if said and (is_all or (means_all(rated[0]) and (may_be_all or will.scope == "session"))):
        return FoundTargets([one._replace(is_meant=True) for one in said], is_sure=False)
    if will.scope == "session":
        return FoundTargets([], is_sure=False)
    pairs = [pair for group, rates in zip(groups, rated, strict=True) for pair in zip(group, rates, strict=True)]
    limit = _find_limit(will, [target.text for target, _ in pairs])
    by_words = {one.memory_id: one.kept for one in named.targets}  # the parts that have no word of the topic
    targets = [
        target._replace(kept=by_words.get(target.memory_id) or one.kept, is_meant=one.probability >= MEANT_MIN)
        for target, one in reversed(pairs)
        if one.probability >= limit
    ]
    if not targets and will.is_likely:
        return named._replace(is_sure=False)
    is_alone = len(targets) == 1 and max(one.probability for _, one in pairs) >= SURE_MIN
    return _settle(will, targets, named, is_alone=is_alone)


def _find_limit(will: Will, texts: Sequence[str]) -> float:
    """Return from which probability on a statement may be meant."""
    if will.scope == "message":  # which is not kept, and may say all that it means
        return VEILED_MIN
    if will.scope == "last" and will.topic:  # "it" may mean what the message says itself
        return OWN_MIN
    if not will.is_likely:
        likely = ASKED_MIN if will.certainty >= POSSIBLE_MIN else SURE_MIN
        return MEANT_MIN if will.certainty >= SURE_WILL_MIN else likely
    return NAMED_MIN if names_another(will.request, texts) else MAYBE_MIN


def _settle(will: Will, targets: Sequence[ForgetTarget], named: FoundTargets, *, is_alone: bool) -> FoundTargets:
    """Return the targets, only the one that is sure if one is.

    What a topic names is sure by its words, and what "that" means as the only statement that may be meant.
    """
    words = [one.memory_id for one in named.targets] if named.is_sure and will.scope == "topic" else []
    by_words = [one for one in targets if [one.memory_id] == words and (one.is_meant or len(targets) == 1)]
    is_others = is_clause(will.topic) and named.targets and not named.is_sure  # "where I live" is not where she lives
    is_own = will.scope == "last" and will.topic
    is_sure = bool(by_words or (is_alone and not will.topic)) and not is_others and not is_own and will.certainty == 1
    return FoundTargets(by_words or targets if is_sure else targets, is_sure=is_sure)


async def find_requests(
    tx: Tx, line: StoredMessage, targets: Sequence[ForgetTarget], agent_id: UUID
) -> list[ForgetTarget | None]:
    """Return what is stored of a request to forget each of the targets, without the parts that say something else.

    A request that may be none is stored as it was said, and of others what they say besides.
    """
    place = {"session_id": line.session_id, "position": line.position, "until": line.position + 1}
    (row, *_) = await SQL["list_last"].fetch_all(tx, agent_id=agent_id, **place, max_rows=1) or [None]
    if row is None or row["position"] != line.position:
        return [None] * len(targets)
    text, is_weak = row["content"], line.will is not None and line.will.scope == "weak"
    parts = [(text[slice(*span)], rate_wish(text, span)) for span in list_spans(text)]
    found = list[ForgetTarget | None]()
    for target in targets:
        kept = tuple(n for n, (part, wish) in enumerate(parts) if wish < MEANT_MIN and not _says(part, target.text))
        is_whole = len(kept) == len(parts)
        found.append(
            ForgetTarget(row["memory_id"], text, () if is_whole else kept) if is_weak or not is_whole else None
        )
    return found


def _says(part: str, statement: str) -> bool:
    """Return whether half of the words of a part are those of a statement."""
    own, known = (list_stems(one.replace(WITHHELD, "").replace(FORGOTTEN, "")) for one in (part, statement))
    return bool(own) and 2 * len(share_stems(own, known)) >= len(own)


async def _find_alike(tx: Tx, text: str, key: Mapping[str, Any]) -> FoundTargets:
    """Return the messages to which a text may refer by "it": those that share most words with it."""
    stems = list_stems(text)
    patterns = ["%"] if names_kind(text) else _to_patterns(stems)
    rows = await _list_said(tx, patterns, key)
    shared = {
        row["memory_id"]: len(share_stems(stems, list_stems(row["content"]))) or int(is_of_kind(row["content"], text))
        for row in rows
    }
    best = max(shared.values(), default=0)
    found = [ForgetTarget(row["memory_id"], row["content"]) for row in rows if shared[row["memory_id"]] == best > 0]
    return FoundTargets(found, is_sure=sum(map(bool, shared.values())) == 1)


async def _find_near(tx: Tx, topic: str, key: Mapping[str, Any], embedder: Embedder) -> FoundTargets:
    """Return the messages that come nearest to a topic, if any is near: "the shingles", told as "herpes zoster"."""
    try:
        (vector,) = await embedder.embed([topic])
    except ProviderError:
        return FoundTargets([], is_sure=False)
    search = {"model_id": derive_model_id(embedder.identity), "embedding": HalfVector(vector)}
    rows = await SQL["find_near"].fetch_all(tx, **key, **search, min_similarity=MIN_SIMILARITY, max_rows=MAX_NEAR)
    near = [row for row in rows if row["similarity"] >= rows[0]["similarity"] - MAX_DISTANCE]
    return FoundTargets([ForgetTarget(row["memory_id"], row["content"]) for row in near], is_sure=False)


async def _list_said(tx: Tx, patterns: Sequence[str], key: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statements of a person with one of these words, without messages that only ask."""
    rows = await SQL["list_said"].fetch_all(tx, **key, patterns=patterns, since=None, until=None, max_rows=MAX_FOUND)
    return [dict(row) for row in rows if not is_only_question(row["content"])]


def _to_patterns(stems: Collection[str]) -> list[str]:
    return sorted({f"%{stem[: max(MIN_PREFIX, len(stem) - 2)]}%" for stem in stems})


async def _find_topic(tx: Tx, topic: str, key: Mapping[str, Any]) -> FoundTargets:
    """Return the messages, and the other memories without a message, that have the words of a topic."""
    stems = list_stems(topic) or frozenset(re.findall(r"\w+", topic.lower()))
    patterns = ["%"] if names_kind(topic) else _to_patterns(stems)
    said = await _list_said(tx, patterns, key)
    known = await SQL["list_known"].fetch_all(tx, **key, patterns=patterns, max_rows=MAX_FOUND)
    texts = {row["memory_id"]: row["content"] for row in said}
    shares = {row["memory_id"]: _share(row["content"], topic, stems) for row in said}
    for row in known:
        share = _share(row["content"], topic, stems)
        for memory_id in row["source_ids"] or [row["memory_id"]]:
            shares[memory_id] = max(shares.get(memory_id, 0), share)
            texts.setdefault(memory_id, row["content"])
    best = max(shares.values(), default=0)
    if best < MIN_PARTIAL_SHARE:
        return FoundTargets([], is_sure=True)
    limit = min(best, MIN_TOPIC_SHARE)
    found = [memory_id for memory_id, share in shares.items() if share >= limit]
    messages = {row["memory_id"]: row["content"] for row in await read_messages(tx, found, key["agent_id"])}
    targets = [ForgetTarget(one, messages[one], _find_rest(messages[one], topic)) for one in found if one in messages]
    words = set(re.findall(r"\w+", topic.lower())) if is_clause(topic) else set[str]()
    is_own = all(words <= set(re.findall(r"\w+", one.text.lower())) for one in targets)
    return FoundTargets(targets, is_sure=best >= MIN_TOPIC_SHARE and is_own)


def _share(text: str, topic: str, stems: Collection[str]) -> float:
    """Return which share of the words of a topic a text has; at most half if it only has their owner, "Bev"."""
    if topic.lower() in text.lower():
        return 1
    head, found = _OWNER.sub("", topic), list_stems(text)
    has_word = bool({*head.lower().split()} & {*text.lower().split()})  # a short one, "ex", has no stem
    names_head = head == topic or has_word or share_stems(list_stems(head), found)
    if not names_head and not is_of_kind(text, topic):
        return MIN_PARTIAL_SHARE * bool(share_stems(stems, found))
    share = len(share_stems(stems, found)) / max(len(stems), 1)
    return 1 if is_about(text, topic) else min(share + MIN_PARTIAL_SHARE * is_of_kind(text, topic), 1)


def _find_rest(text: str, topic: str) -> tuple[int, ...]:
    """Return the numbers of the parts that say something else than the topic, and do not refer to it."""
    parts, wanted = list_parts(text), _find_head(text, topic)
    gone = {k for k, (_, part) in enumerate(parts) if share_stems(wanted, list_stems(part))}
    if not gone:
        return ()
    for k, (sentence, part) in enumerate(parts):
        is_same = k > 0 and sentence == parts[k - 1][0]  # "Bev lives in Whitby and she has two lads"
        refers = refers_to_other(part) if is_same else refers_back(part) or is_continuation(part)
        if k and refers and (k - 1 in gone or (k in gone and not is_same)):
            gone |= {k} if is_same else {m for m, (n, _) in enumerate(parts) if sentence - n in (0, 1)}
    stems = frozenset[str]().union(*(list_stems(parts[k][1]) for k in gone))
    return tuple(k for k, (_, part) in enumerate(parts) if k not in gone and not share_stems(list_stems(part), stems))


def _find_head(text: str, topic: str) -> frozenset[str]:
    """Return the words of a topic that tell what it is, without its owner, if a text has them: "Bev's lads"."""
    head = list_stems(_OWNER.sub("", topic))
    return head if share_stems(head, list_stems(text)) else list_stems(topic)


async def read_messages(tx: Tx, memory_ids: Sequence[UUID], agent_id: UUID) -> Sequence[Mapping[str, Any]]:
    """Return messages, and other memories, with their texts and places."""
    rows = await SQL["read_messages"].fetch_all(tx, agent_id=agent_id, memory_ids=list(memory_ids))
    return [dict(row) for row in rows]
