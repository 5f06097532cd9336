"""The sentences of a conversation that lie nearest its centre, by the words that it keeps coming back to. Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence

FEWEST_WORDS, MOST_WORDS = 4, 40  # a shorter sentence says nothing alone, a longer one is no gist
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_WORD = re.compile(r"\w[\w'’]+")
_OFTEN = """
about after all also and any are been but can could did does doing don't for from get going good got great had has have
her him his how i'm it's its just know like make more much not now one our out really said she should some something
sounds than thank thanks that that's the their them then there they thing think this time too very want was way well
were what when which who will with would yeah yes you your
"""
COMMON = frozenset(_OFTEN.split())  # words that no conversation is about


def central(texts: Sequence[str], *, most: int) -> list[str]:
    """At most so many sentences, in the order in which they were said, each nearest to what is said in all of them.

    Nearness is the cosine between the words of a sentence and those of the whole; a sentence close to one taken already
    is passed over.
    """
    sentences = list(dict.fromkeys(s.strip() for text in texts for s in _SENTENCE.split(text)))
    bags = {s: bag for s in sentences if FEWEST_WORDS <= len(s.split()) <= MOST_WORDS and (bag := _bag(s))}
    places = {s: place for place, s in enumerate(sentences)}
    centre = sum(bags.values(), Counter[str]())
    ranked = sorted(bags, key=lambda s: (-_cosine(bags[s], centre), places[s]))
    taken: list[str] = []
    for sentence in ranked:
        if len(taken) == most:
            break
        if all(_cosine(bags[sentence], bags[other]) < 0.5 for other in taken):
            taken.append(sentence)
    return sorted(taken, key=places.__getitem__)


def _bag(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) > 2 and word not in COMMON)


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    dot = sum(times * other[word] for word, times in one.items())
    return dot / (_length(one) * _length(other)) if dot else 0.0


def _length(bag: Counter[str]) -> float:
    return math.sqrt(sum(times * times for times in bag.values()))
