"""Detection of the memories in a context that a reply used: by citation, quotation or specific words. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from newton.heart.statements.statement_candidates import ClauseForm, split_message
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.text.questions import contains_question, opens_question
from newton.text.sentences import STOP_WORDS, split_sentences
from newton.text.stems import strip_ending

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’][^\W\d_]+)?")
_HEAD = re.compile(r"^\[[^\]]*\] (?:(?:User|Assistant|System|Tool): )?")  # date, speaker, outcome
_MIN_LETTERS = 3
# Unspecific words, in addition to STOP_WORDS.
_FREQUENT_WORDS = """
above again against always another anything because before being below between both called came come does done down
during each even ever every everything few first found gave give given goes gone however into keep kept last least less
let lot made many may maybe might most must need needs never nothing often once only other others over own part per put
rather said same say says see seen several shall since still such sure take taken tell thing things though through told
too two under until upon use used using via well went whether while whole whose why within without yet you'd your yours
"""
_STOPWORDS = STOP_WORDS.union(_FREQUENT_WORDS.split())

MIN_QUOTE_WORDS = 3  # minimum length of a quotation
# Weights of specific words. Numbers and words capitalized within a sentence are names. A capitalized first word is a
# name only if the reply capitalizes it too.
NAME_WEIGHT, MAYBE_NAME_WEIGHT, WORD_WEIGHT = 2.0, 1.5, 1.0
WINDOW_WORDS = 30  # window within a sentence
# Minimum weight of the shared words in one sentence; higher for an item of at least LONG_ITEM_WEIGHT.
MIN_SHARED_WEIGHT, MIN_SHARED_WEIGHT_LONG, LONG_ITEM_WEIGHT = 3.0, 4.0, 6.0
RESTATED_SHARE = 0.6  # share of an item's stems in a sentence that restates it
MAX_NEW_SHARE = 0.25  # of the words of a reply that only restates something
MAX_ECHO_SHARE, MAX_REMARK_WORDS = 2 / 3, 4  # new words of a reply that takes up a message, and words of its remarks
BRIEF_REPLY_WORDS, BRIEF_REPLY_SHARE = 6, 0.5  # maximum of new words, and minimum share of the item's words in them


class _WordPosition(NamedTuple):
    """A stemmed word with its position in the sentence, and whether it is capitalized."""

    position: int
    stem: str
    is_capitalized: bool


@dataclass(frozen=True, slots=True)
class _ParsedReply:
    """A parsed reply: the content words of each sentence, the stems of the input, and those found only in the reply."""

    text: str
    sentences: Sequence[Sequence[_WordPosition]]
    input_stems: frozenset[str]
    new_stems: frozenset[str]


def extract_keywords(text: str) -> frozenset[str]:
    """Return the content words and numbers of a text in lower case."""
    return frozenset(_normalize_word(word) for word in _WORD.findall(text) if _is_content_word(word))


def find_used(
    reply: str, items: Mapping[UUID, str], *, input_text: str, refs: Mapping[UUID, str | None] | None = None
) -> set[UUID]:
    """Return the ids of the memories in a context (`items`) that the reply used. `refs` are their external ids.

    A reply uses a memory whose id it cites or whose text it quotes. Otherwise it must have specific words of the
    memory, which are neither in the input nor in most other memories. One of these suffices: several stand close
    together, where names and numbers count double; a sentence with one has most words of the memory; or a short reply
    consists mostly of them.
    """
    parsed, refs = _parse_reply(reply, input_text), refs or {}
    counts = Counter(chain.from_iterable(_extract_stems(_strip_prefix(item)) for item in items.values()))
    max_count = max((len(items) - 1) / 2, 1) + 1  # of a specific stem: in half of the other items, and in its own
    common = frozenset(stem for stem, count in counts.items() if count > max_count)
    return {
        memory_id
        for memory_id, item in items.items()
        if _cites_ref(reply, memory_id, refs.get(memory_id)) or _uses_item(parsed, item, common)
    }


def restates(reply: str, sources: Iterable[str]) -> bool:
    """Return whether a reply says only what the `sources` say: all of its names and numbers, and most words.

    One word may be new, such as "Noted", if at least two are not.

    >>> sources = ["My shoe size is 43.", "Anna lives in Linz."]
    >>> replies = "From what I know: your shoe size is 43.", "Anna lives in Graz.", "Yes."
    >>> [restates(reply, sources) for reply in replies]
    [True, False, False]
    """
    known = frozenset(chain.from_iterable(map(_extract_stems, sources)))
    words = [word for sentence in split_sentences(reply) for word in _locate_words(sentence)]
    new = [word for word in words if word.stem not in known]
    return not _names_more(new) and len(new) <= max(1, MAX_NEW_SHARE * len(words)) and len(words) - len(new) > 1


def echoes(reply: str, message: str) -> bool:
    """Return whether a reply only takes up what a message tells, with remarks about it.

    It has no new name or number, and not many new words; each sentence has a word of the message or is short. A message
    that asks for something is answered, not taken up, and a reply that asks explains the next message.

    >>> told = "I wear a splint at night, it is for the arthritis in my thumb."
    >>> replies = "Good that you wear it. Sleep well!", "Does the splint help?", "The surgeon Kern treats the thumb."
    >>> [echoes(one, told) for one in replies]
    [True, False, False]
    >>> echoes("A splint at night helps arthritis.", "What helps with arthritis at night?")
    False
    """
    if contains_question(reply) or _asks(message):
        return False
    known = _extract_stems(message)
    sentences = [_locate_words(one) for one in split_sentences(reply)]
    new = [word for words in sentences for word in words if word.stem not in known]
    remarks = [words for words in sentences if known.isdisjoint(word.stem for word in words)]
    is_brief = all(len(words) <= MAX_REMARK_WORDS for words in remarks) and len(remarks) < len(sentences)
    return is_brief and not _names_more(new) and len(new) <= MAX_ECHO_SHARE * sum(map(len, sentences))


def _asks(message: str) -> bool:
    """Return whether a message asks a question or for something to be done."""
    asking = (ClauseForm.QUESTION, ClauseForm.REQUEST)
    clauses = split_message(message)
    return contains_question(message) or opens_question(message) or any(one.form in asking for one in clauses)


def _names_more(new: Iterable[_WordPosition]) -> bool:
    """Return whether any of the words is a name or a number."""
    return any((word.is_capitalized and word.position) or word.stem[0].isdigit() for word in new)


def _parse_reply(reply: str, input_text: str) -> _ParsedReply:
    sentences = [_locate_words(sentence) for sentence in split_sentences(reply)]
    stems, input_stems = {word.stem for sentence in sentences for word in sentence}, _extract_stems(input_text)
    return _ParsedReply(_normalize_quote(reply), sentences, input_stems, frozenset(stems - input_stems))


def _locate_words(sentence: str) -> list[_WordPosition]:
    words = _WORD.findall(sentence)
    return [_WordPosition(n, _stem(word), word[0].isupper()) for n, word in enumerate(words) if _is_content_word(word)]


def _uses_item(reply: _ParsedReply, item: str, common: Set[str]) -> bool:
    text = _strip_prefix(item)
    if _contains_phrase(_normalize_quote(text), reply.text):
        return True
    specific = {stem: weight for stem, weight in _weigh_stems(text).items() if stem not in common | reply.input_stems}
    shared = specific.keys() & reply.new_stems
    return bool(shared) and (
        _has_cluster(reply, specific)
        or _restates_item(reply, _extract_stems(text), shared)
        or _is_brief_mention(reply, specific, shared)
    )


def _has_cluster(reply: _ParsedReply, specific: Mapping[str, float]) -> bool:
    """Return True if at least two specific words, with the minimum weight, are within `WINDOW_WORDS` of a sentence."""
    needed = MIN_SHARED_WEIGHT_LONG if sum(specific.values()) >= LONG_ITEM_WEIGHT else MIN_SHARED_WEIGHT
    for sentence in reply.sentences:
        hits = [word for word in sentence if word.stem in specific]
        for n, first in enumerate(hits):
            window = [word for word in hits[n:] if word.position < first.position + WINDOW_WORDS]
            weights = {w.stem: _resolve_weight(specific[w.stem], is_capitalized=w.is_capitalized) for w in window}
            if len(weights) > 1 and sum(weights.values()) >= needed:
                return True
    return False


def _restates_item(reply: _ParsedReply, item_stems: Set[str], shared: Set[str]) -> bool:
    sentences = ({word.stem for word in sentence} for sentence in reply.sentences)
    return len(item_stems) > 1 and any(
        s & shared and len(s & item_stems) >= RESTATED_SHARE * len(item_stems) for s in sentences
    )


def _is_brief_mention(reply: _ParsedReply, specific: Mapping[str, float], shared: Set[str]) -> bool:
    capitals = {word.stem for sentence in reply.sentences for word in sentence if word.is_capitalized}
    has_name = any(_resolve_weight(specific[stem], is_capitalized=stem in capitals) >= NAME_WEIGHT for stem in shared)
    is_brief = len(reply.new_stems) <= BRIEF_REPLY_WORDS and len(shared) >= BRIEF_REPLY_SHARE * len(reply.new_stems)
    return is_brief and (has_name or len(shared) == len(specific))


def _weigh_stems(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for sentence in split_sentences(text):
        for n, word in enumerate(_WORD.findall(sentence)):
            if _is_content_word(word):
                weight = MAYBE_NAME_WEIGHT if word[0].isupper() else WORD_WEIGHT
                if word[0].isdigit() or (word[0].isupper() and n):
                    weight = NAME_WEIGHT
                weights[_stem(word)] = max(weight, weights.get(_stem(word), 0.0))
    return weights


def _resolve_weight(weight: float, *, is_capitalized: bool) -> float:
    """Return the weight of a word. One that may be a name counts as a name only if the reply also capitalizes it."""
    if weight == MAYBE_NAME_WEIGHT:
        return NAME_WEIGHT if is_capitalized else WORD_WEIGHT
    return weight


def _cites_ref(reply: str, memory_id: UUID, ref: str | None) -> bool:
    """Return True if the reply cites the memory's id or external id.

    An external id that could be an ordinary word counts only in brackets.
    """
    names = [str(memory_id), short_id(memory_id)]
    if ref is not None:
        names.append(ref if len(ref) >= len("D12:34") and re.search(r"\d", ref) else f"[{ref}]")
    return any(_contains_phrase(name.casefold(), reply.casefold()) for name in names)


def _contains_phrase(phrase: str, text: str) -> bool:
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _normalize_quote(text: str) -> str:
    """Return the words of a text joined by spaces; empty if they are too few for a quotation."""
    words = _WORD.findall(one_line(text).casefold())
    return " ".join(words) if len(words) >= MIN_QUOTE_WORDS else ""


def _strip_prefix(item: str) -> str:
    return _HEAD.sub("", item)


def _extract_stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text) if _is_content_word(word))


def _stem(word: str) -> str:
    return strip_ending(_normalize_word(word).removesuffix("'s"))


def _is_content_word(word: str) -> bool:
    return len(word) >= (2 if word[0].isdigit() else _MIN_LETTERS) and _normalize_word(word) not in _STOPWORDS


def _normalize_word(word: str) -> str:
    return word.casefold().replace("’", "'")
