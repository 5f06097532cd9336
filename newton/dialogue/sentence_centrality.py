"""The sentences of a conversation that lie nearest its centre, by the words that it keeps coming back to. Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence

MIN_WORDS, MAX_WORDS = 4, 40  # a shorter sentence says nothing alone, a longer one is no gist
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_WORD = re.compile(r"\w[\w'’]+")
_STOP_WORDS_TEXT = """
about after all also and any are been but can could did does doing don't for from get going good got great had has have
her him his how i'm it's its just know like make more much not now one our out really said she should some something
sounds than thank thanks that that's the their them then there they thing think this time too very want was way well
were what when which who will with would yeah yes you your
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())  # words that no conversation is about


def central_sentences(texts: Sequence[str], *, limit: int) -> list[str]:
    """At most so many sentences, in the order in which they were said, each nearest to what is said in all of them.

    Nearness is the cosine between the words of a sentence and those of the whole; a sentence close to one taken already
    is passed over.
    """
    sentences = list(dict.fromkeys(s.strip() for text in texts for s in _SENTENCE.split(text)))
    bags = {s: bag for s in sentences if MIN_WORDS <= len(s.split()) <= MAX_WORDS and (bag := _count_words(s))}
    places = {s: place for place, s in enumerate(sentences)}
    centre = sum(bags.values(), Counter[str]())
    ranked = sorted(bags, key=lambda s: (-_cosine(bags[s], centre), places[s]))
    taken: list[str] = []
    for sentence in ranked:
        if len(taken) == limit:
            break
        if all(_cosine(bags[sentence], bags[other]) < 0.5 for other in taken):
            taken.append(sentence)
    return sorted(taken, key=places.__getitem__)


def _count_words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) > 2 and word not in STOP_WORDS)


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    dot = sum(times * second[word] for word, times in first.items())
    return dot / (_norm(first) * _norm(second)) if dot else 0.0


def _norm(bag: Counter[str]) -> float:
    return math.sqrt(sum(times * times for times in bag.values()))
