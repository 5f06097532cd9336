"""Extractive summarization: the sentences closest to the centroid of all sentences' word counts. Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence

MIN_WORDS, MAX_WORDS = 4, 40  # of a sentence that may be selected
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_WORD = re.compile(r"\w[\w'’]+")
_STOP_WORDS_TEXT = """
about after all also and any are been but can could did does doing don't for from get going good got great had has have
her him his how i'm it's its just know like make more much not now one our out really said she should some something
sounds than thank thanks that that's the their them then there they thing think this time too very want was way well
were what when which who will with would yeah yes you your
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())  # words without a topic


def central_sentences(texts: Sequence[str], *, limit: int) -> list[str]:
    """Return at most `limit` sentences, in their order, that are closest to the centroid of all sentences.

    Closeness is the cosine similarity of word counts. Sentences similar to a selected one are skipped.
    """
    sentences = list(dict.fromkeys(s.strip() for text in texts for s in _SENTENCE.split(text)))
    counts = {s: bag for s in sentences if MIN_WORDS <= len(s.split()) <= MAX_WORDS and (bag := _count_words(s))}
    positions = {s: position for position, s in enumerate(sentences)}
    centroid = sum(counts.values(), Counter[str]())
    ranked = sorted(counts, key=lambda s: (-_cosine(counts[s], centroid), positions[s]))
    selected: list[str] = []
    for sentence in ranked:
        if len(selected) == limit:
            break
        if all(_cosine(counts[sentence], counts[other]) < 0.5 for other in selected):
            selected.append(sentence)
    return sorted(selected, key=positions.__getitem__)


def _count_words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) > 2 and word not in STOP_WORDS)


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    dot = sum(times * second[word] for word, times in first.items())
    return dot / (_norm(first) * _norm(second)) if dot else 0.0


def _norm(bag: Counter[str]) -> float:
    return math.sqrt(sum(times * times for times in bag.values()))
