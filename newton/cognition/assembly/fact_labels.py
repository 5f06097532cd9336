"""Labels of memories in a context: whose word each is, where that is not the person's (`source_marks`), and of facts
also when each was stated, whether it is in doubt, and what contradicts it. Pure.

A message, and the reply to it, get a label that names the facts stated in the message that have changed since.

A label stands between the bullet and the text ("- 12 Nov: Ana lives in Oslo"). No token spans its borders, so the token
counts of label and stored line add up, and nothing is tokenized while a context is built.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.render import FENCED_KINDS
from newton.content.yaml_files import parse_trusted
from newton.heart.speakers import concerns_safety
from newton.memory.memory import TokenCounter, past_reason
from newton.memory.representations import START_PREFIX_LENGTH, has_start_prefix, indent_lines, start_prefix, to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.memory.source_marks import SOURCE_MARKS, mark_source
from newton.text.time_expressions import remove_resolved_dates
from newton.text.words import extract_content_words

SHORT_LIVED_AGE = timedelta(days=14)  # after this time a short-lived fact may be outdated
MAX_SHORT_YEAR_DISTANCE = 50  # in years; beyond it two digits do not identify the year

UNSETTLED, MAYBE_OUTDATED, OUTDATED = "unsettled", "maybe outdated", "changed since"
INHERITED = "all projects"  # of what was stored above the project
UNTIL, FROM = "until", "from"
# The beginnings of the first and the further lines of an item.
BULLET, ALTERNATIVE, EARLIER, ELSEWHERE = "-", "or", "earlier", "elsewhere"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class FactLabel(NamedTuple):
    """The label of a memory, and the tokens of the labelled item as summary and in the shorter micro form.

    `group` are facts that contradict each other and are one item: the latest first, this fact included; else empty.
    `alternative` begins the further lines of the item.
    """

    prefix: str
    summary_tokens: int
    micro_tokens: int
    group: tuple[UUID, ...] = ()
    alternative: str = ALTERNATIVE


@dataclass(frozen=True, slots=True)
class LabelTokens:
    """Token counts for labels: of a day, of each label word, and of the words in place of a bullet.

    `start_prefix` is the count of the date before a fact that was stored before its validity began, and `count` counts
    the tokens of a whole label.
    """

    day: int
    words: Mapping[str, int]
    alternatives: Mapping[str, int]
    start_prefix: int
    count: Callable[[str], int]


class _LabelPart(NamedTuple):
    """A part of a label and its tokens, including those of the separator after it."""

    text: str
    tokens: int


@functools.lru_cache(maxsize=4)
def count_label_tokens(count_tokens: TokenCounter) -> LabelTokens:
    """Count the tokens of the parts of labels. Every day has the same count (see `format_day`)."""

    def count(label: str) -> int:
        return count_tokens(to_bullet(f"{label} a")) - count_tokens(to_bullet("a"))

    words = {word: count(word) for word in (UNSETTLED, *SOURCE_MARKS, INHERITED, MAYBE_OUTDATED, UNTIL, FROM)}
    alternatives = {word: count_tokens(word) - count_tokens(BULLET) for word in (ALTERNATIVE, EARLIER, ELSEWHERE)}
    return LabelTokens(count("1 Jan"), words, alternatives, count(start_prefix("2000-01-01").strip()), count)


def format_day(day: date, *, today: date) -> str:
    """Format a day in three tokens: day and month in this year, else month and year, or the year alone beyond 50 years.

    >>> today = date(2026, 11, 23)
    >>> [format_day(day, today=today) for day in (date(2026, 11, 12), date(2024, 11, 12), date(1913, 5, 1))]
    ['12 Nov', "Nov '24", '1913']
    """
    if day.year == today.year:
        return f"{day.day} {MONTHS[day.month - 1]}"
    if abs(day.year - today.year) > MAX_SHORT_YEAR_DISTANCE:
        return f"{day.year:04}"
    return f"{MONTHS[day.month - 1]} '{day.year % 100:02}"


def label_facts(memories: Iterable[RetrievedMemory], *, now: datetime, tokens: LabelTokens) -> dict[UUID, FactLabel]:
    """Return the labels of memories by id. A fact that a person stated today and that is not in doubt has none.

    The label of a fact shows the day on which a person or the agent last confirmed it; before the first confirmation,
    the day from which it is valid.
    """
    now, memories = now.astimezone(UTC), list(memories)
    facts = {found.memory_id: found for found in memories if found.kind == "fact"}
    groups = _group_contradictions(facts, now)
    labels = _label_others(memories, tokens)
    for found in facts.values():
        group = groups.get(found.memory_id, ())
        prefix = _join_parts(_list_parts(found, group, now, tokens))
        if prefix or has_start_prefix(found.summary):
            sizes = _measure_item(group or (found,), now, tokens)
            ids, alternative = tuple(member.memory_id for member in group), _choose_alternative(group)
            labels[found.memory_id] = FactLabel(prefix, *sizes, ids, alternative)
    return labels


def _label_others(memories: Sequence[RetrievedMemory], tokens: LabelTokens) -> dict[UUID, FactLabel]:
    """Return the labels of other memories than facts: whose word they are, and what has changed since a message.

    The reply to such a message has the label too if it repeats words of what has changed. The fence around text of
    tools says whose word that is.
    """
    changed = {
        (found.thread_id, found.position): found.changed
        for found in memories
        if found.kind == "exchange" and found.changed
    }
    labels = dict[UUID, FactLabel]()
    for found in memories:
        if found.kind == "fact":
            continue
        said = changed.get((found.thread_id, found.position - 1)) if found.position else None
        is_reply = said and extract_content_words(said) & extract_content_words(found.summary)
        what = found.outdated or (said if is_reply else None)
        parts = [] if found.kind in FENCED_KINDS else _list_marks(found, tokens)
        if what:
            text = _describe_change(found, what)
            parts.append(_LabelPart(text, tokens.count(f"{text}:")))
        if parts:
            extra = sum(part.tokens for part in parts)
            labels[found.memory_id] = FactLabel(
                _join_parts(parts), found.summary_tokens + extra, found.micro_tokens + extra
            )
    return labels


def _describe_change(found: RetrievedMemory, changed: str) -> str:
    """Return that a message is outdated. It names what has changed unless that is all that the message says."""
    is_all = found.spoken_text.removesuffix(".") == remove_resolved_dates(changed).removesuffix(".")
    return OUTDATED if is_all else f"{OUTDATED} ({changed})"


def _list_marks(found: RetrievedMemory, tokens: LabelTokens) -> list[_LabelPart]:
    """Return the marks of what is from above the project, and of whose word it is. A procedure has its own header."""
    inherited = INHERITED if found.is_inherited and found.kind != "procedure" else ""
    return [_LabelPart(mark, tokens.words[mark] + 1) for mark in (inherited, mark_source(found)) if mark]


def label_separate_facts(
    memories: Iterable[RetrievedMemory], *, now: datetime, tokens: LabelTokens
) -> dict[UUID, FactLabel]:
    """Return the labels by memory id, as `label_facts`, but with contradicting facts as separate items."""
    now, memories = now.astimezone(UTC), list(memories)
    facts = {found.memory_id: found for found in memories if found.kind == "fact"}
    contested = _group_contradictions(facts, now).keys()
    labels = _label_others(memories, tokens)
    for found in facts.values():
        parts = _list_parts(found, (found,) if found.memory_id in contested else (), now, tokens)
        if parts or has_start_prefix(found.summary):
            extra = sum(part.tokens for part in parts)
            extra -= tokens.start_prefix if has_start_prefix(found.summary) else 0
            labels[found.memory_id] = FactLabel(
                _join_parts(parts), found.summary_tokens + extra, found.micro_tokens + extra
            )
    return labels


def render_found(found: RetrievedMemory, text: str, now: datetime) -> str:
    """Return the text of a memory as a search result, after whose word it is and, if it is not current, why."""
    mark = past_reason(found.kind, found.state) or (f"{OUTDATED} ({found.outdated})" if found.outdated else "")
    if not mark and found.kind == "fact" and found.valid_to and _has_ended(found, now):
        mark = f"{UNTIL} {format_day(found.valid_to.astimezone(UTC).date(), today=now.astimezone(UTC).date())}"
    inherited = INHERITED if found.is_inherited else ""
    marks = ", ".join(filter(None, (inherited, mark_source(found), mark)))
    return f"{marks}: {text}" if marks else text


def strip_start_prefix(text: str) -> str:
    """Remove the date at the start of a fact that was stored before its validity began; the label shows it."""
    return text[START_PREFIX_LENGTH:] if has_start_prefix(text) else text


def render_fact(label: FactLabel, text: str) -> str:
    """Return label and text of a fact as one line, without a bullet."""
    return f"{label.prefix} {strip_start_prefix(text)}".lstrip()


def render_contradiction(lines: Sequence[str], alternative: str = ALTERNATIVE) -> str:
    """Join the lines of facts that contradict each other into one item; `alternative` begins the further lines."""
    first, *others = lines
    return to_bullet(first) + "".join(f"{alternative} {indent_lines(line)}\n" for line in others)


def _measure_item(members: Sequence[RetrievedMemory], now: datetime, tokens: LabelTokens) -> tuple[int, int]:
    """Return the tokens of an item of one or more facts: with their summaries, and with their shorter micro forms."""
    extra = tokens.alternatives[_choose_alternative(members)] * (len(members) - 1)
    for found in members:
        parts = _list_parts(found, members if len(members) > 1 else (), now, tokens)
        extra += sum(part.tokens for part in parts)
        extra -= tokens.start_prefix if has_start_prefix(found.summary) else 0
    return sum(f.summary_tokens for f in members) + extra, sum(f.micro_tokens for f in members) + extra


def _choose_alternative(group: Sequence[RetrievedMemory]) -> str:
    """Return `or`, or `earlier` if a person stated one after the other, so that the latest statement holds.

    A fact of the project is followed by what is said `elsewhere`, above the project. Facts about safety always get
    `or`: they stay in doubt until a person decides.
    """
    if len({found.is_inherited for found in group}) > 1:
        return ELSEWHERE
    times = {found.told_at for found in group}
    is_told = len(times) == len(group) and not any(map(mark_source, group))
    is_grave = any(found.state == "CORE" or concerns_safety(found.summary) for found in group)
    return EARLIER if is_told and not is_grave else ALTERNATIVE


def _join_parts(parts: Sequence[_LabelPart]) -> str:
    return f"{', '.join(part.text for part in parts)}:" if parts else ""


def _list_parts(
    found: RetrievedMemory, group: Sequence[RetrievedMemory], now: datetime, tokens: LabelTokens
) -> list[_LabelPart]:
    is_unsettled = bool(group) and group[0] is found and (len(group) == 1 or _choose_alternative(group) == ALTERNATIVE)
    parts = [_LabelPart(UNSETTLED, tokens.words[UNSETTLED] + 1)] if is_unsettled else []
    if found.changed:
        text = f"{OUTDATED} ({found.changed})"
        parts.append(_LabelPart(text, tokens.count(f"{text},")))
    return [*parts, *_list_marks(found, tokens), *_list_time_parts(found, now, tokens, is_contested=bool(group))]


def _list_time_parts(
    found: RetrievedMemory, now: datetime, tokens: LabelTokens, *, is_contested: bool
) -> Iterator[_LabelPart]:
    def day_part(moment: datetime, word: str = "") -> _LabelPart:
        day = format_day(moment.astimezone(UTC).date(), today=now.date())
        return _LabelPart(f"{word} {day}".lstrip(), tokens.words.get(word, 0) + tokens.day + 1)

    if _is_upcoming(found, now):
        yield day_part(found.occurred_at, FROM)
    elif found.valid_to and _has_ended(found, now):
        yield day_part(found.valid_to, UNTIL)
    elif is_contested or found.told_at.astimezone(UTC).date() != now.date():
        yield day_part(found.told_at)
        if now - found.told_at > SHORT_LIVED_AGE and is_short_lived(f"{found.attribute or ''} {found.summary}"):
            yield _LabelPart(MAYBE_OUTDATED, tokens.words[MAYBE_OUTDATED] + 1)


def _is_upcoming(found: RetrievedMemory, now: datetime) -> bool:
    return found.occurred_at.astimezone(UTC).date() > now.date()


def _has_ended(found: RetrievedMemory, now: datetime) -> bool:
    """Return True if the validity of the fact has ended and nobody confirmed it after its end."""
    return found.valid_to is not None and (found.renewed_at or found.occurred_at) <= found.valid_to <= now


@functools.lru_cache(maxsize=4_096)  # of the texts of facts, which every context judges
def is_short_lived(text: str) -> bool:
    """Return True if a text is about something that usually changes within days, such as a price or who is on call."""
    return _short_lived_pattern().search(text) is not None


@functools.cache
def _short_lived_pattern() -> re.Pattern[str]:
    source = files("newton.cognition.assembly").joinpath("short_lived.yaml").read_text(encoding="utf-8")
    phrases: list[str] = parse_trusted(source)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)", re.IGNORECASE)


def _group_contradictions(
    facts: Mapping[UUID, RetrievedMemory], now: datetime
) -> dict[UUID, tuple[RetrievedMemory, ...]]:
    """Map each current fact that is contradicted to the facts of its item, the latest first.

    An item is a fact with those that contradict it, beginning with the facts that fit the input best; so a chain of
    facts of which each contradicts the next is not one item. Facts of a project come before those above it.
    """
    current = {memory_id: found for memory_id, found in facts.items() if _is_current(found, now)}
    neighbours = defaultdict[UUID, set[UUID]](set)
    for found in current.values():
        for other in current.keys() & found.contradicted_ids if found.contradicted_ids else ():
            neighbours[found.memory_id].add(other)
            neighbours[other].add(found.memory_id)
    groups: dict[UUID, tuple[RetrievedMemory, ...]] = {}
    for memory_id in sorted(
        neighbours, key=lambda one: (current[one].relevance, len(neighbours[one]), one), reverse=True
    ):
        if memory_id not in groups:
            members = [current[one] for one in (memory_id, *(neighbours[memory_id] - groups.keys()))]
            latest_first = tuple(sorted(members, key=_rank_statement, reverse=True))
            groups |= dict.fromkeys((found.memory_id for found in members), latest_first)
    return groups


def _rank_statement(found: RetrievedMemory) -> tuple[bool, datetime, datetime, UUID]:
    """Return a key that is higher for a fact of the project than for one above it, and for one that is stated later."""
    return not found.is_inherited, found.told_at, found.created_at, found.memory_id


def _is_current(found: RetrievedMemory, now: datetime) -> bool:
    is_past = found.quarantined or past_reason(found.kind, found.state) is not None
    return not (is_past or _has_ended(found, now) or _is_upcoming(found, now))
