"""Features that distinguish a request which a program sends by itself from one that a person types. Pure.

Quoted are blocks between tags or fences, JSON messages, diffs, strings in quotation marks, the lines of speakers and
what follows a label such as "Message:".
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

BLOCK, STRING = "\x01", "\x02"  # stand for what was quoted

_OPENING = re.compile(r"<(\w{1,40})\b[^>\n]{0,200}>|```|\[\s{0,20}\{\s{0,20}\"(?:role|from|author)\"")
_JSON_END = re.compile(r"\}\s{0,20}\]")
_STRINGS = re.compile(r"\"[^\"\n]{12,2000}\"|“[^”\n]{12,2000}”|«[^»\n]{12,2000}»|„[^“\n]{12,2000}“")
_DIFF = re.compile(r"^(?:[+-]\S.*|[+-] {2,}.*|@@.*|diff --git.*)$", re.MULTILINE)
_HEAD = re.compile(r"[^\w\n]{0,4}([^\W\d_]{1,14}(?: [^\W\d_]{1,10})?|\{\{\w{1,40}\}\})[^\w\n]{0,3}(?:[:：]|\*\*$|\]|$)")
_LABEL = re.compile(
    r"(?:^|(?<=[.!?。] ))[^\w\n]{0,4}([^\W\d_][\w'’-]{0,30}(?: [\w'’-]{1,30}){0,3})\*{0,2}[:：]\*{0,2}(?:\s|(?<=：)|$)"
)
_SPEAKERS = frozenset(
    [
        "user",
        "human",
        "assistant",
        "ai",
        "bot",
        "model",
        "system",
        "me",
        "you",
        "chatgpt",
        "claude",
        "customer",
        "agent",
        "q",
        "a",
        "you said",
        "chatgpt said",
        "nutzer",
        "assistent",
        "utilisateur",
        "assistante",
        "usuario",
        "asistente",
        "usuário",
        "utente",
        "пользователь",
        "ассистент",
        "用户",
        "助手",
    ]
)


class RequestRegions(NamedTuple):
    """The parts of a request: lines of instructions, labels such as "Message:", and the payloads (texts) after them.

    `counts` has the number of tags, quoted strings and the like. `order` has a letter for each run of lines: i
    instruction, p payload, q lines of a speaker, b block.
    """

    instructions: list[str]
    labels: list[str]
    payloads: list[str]
    counts: dict[str, int]
    order: str


def divide(text: str) -> RequestRegions:
    """Return the regions of a request: instructions, labels, payloads and quotations."""
    text, tags, messages = _replace_blocks(text)
    text, changes = _DIFF.subn(BLOCK, text)
    text, strings = _STRINGS.subn(STRING, text)
    lines = text.split("\n")
    divider = _Divider([_find_head(line) for line in lines])
    for line, head in zip(lines, divider.heads, strict=True):
        divider.add_line(line, head)
    counts = {"tags": tags, "messages": messages, "changes": changes, "strings": strings, "speakers": divider.speakers}
    order = re.sub(r"(.)\1+", r"\1", divider.order)
    return RequestRegions(divider.instructions, divider.labels, divider.payloads, counts, order)


class _Divider:
    """Assigns each line of a request, read in turn, to an instruction, a payload or the words of a speaker.

    `heads` are the names with which lines begin as those of speakers do; "" for other lines.
    """

    def __init__(self, heads: list[str]) -> None:
        self.heads = heads
        self.instructions, self.labels, self.payloads = list[str](), list[str](), list[str]()
        self.order, self.speakers = "", 0
        self._mode: Literal["i", "p", "q"] = "i"
        repeated = {head for head in heads if head and heads.count(head) > 1}
        self._names = _SPEAKERS | (repeated if len(repeated) > 1 else set[str]())

    def add_line(self, line: str, head: str) -> None:
        """Add the next line; `head` is the name of a speaker with which it begins, or ""."""
        if line == BLOCK:
            self._mode, self.order = "i", f"{self.order}b"
        elif not line.strip():
            self._end_paragraph()
        elif head in self._names:
            self._mode, self.order, self.speakers = "q", f"{self.order}q", self.speakers + 1
        elif self._mode != "q":
            self._add_words(line)

    def _end_paragraph(self) -> None:
        if self._mode == "q" or (self._mode == "p" and len(self.payloads[-1].split()) > 2):
            self._mode = "i"

    def _add_words(self, line: str) -> None:
        label = _LABEL.search(line)
        if label and (self.order or label.start() > 0):
            if before := line[: label.start()].strip():
                self._instruct(before)
            self.labels.append(label[1].lower())
            self._mode, self.order = "p", f"{self.order}p"
            self.payloads.append(line[label.end() :])
            return
        if label:
            self.labels.append(f"^{label[1].lower()}")
        if self._mode == "p" and self.payloads[-1] == "":
            self.payloads.append(line)
        else:
            self._mode = "i"
            self._instruct(line)

    def _instruct(self, line: str) -> None:
        self.instructions.append(line)
        self.order += "i"


def _find_head(line: str) -> str:
    """Return the name with which a line begins as that of a speaker does, in lower case, or an empty string."""
    match = _HEAD.match(line)
    return match[1].lower() if match else ""


def _replace_blocks(text: str) -> tuple[str, int, int]:
    """Return the text with a mark for each block, the number of blocks, and that of JSON lists of messages."""
    parts, position, start, tags, messages = list[str](), 0, 0, 0, 0
    while opening := _OPENING.search(text, position):
        end = _find_end(text, opening)
        position = opening.end() if end < 0 else end
        if end < 0:
            continue
        parts += [text[start : opening.start()], BLOCK]
        start = end
        if opening[0].startswith("["):
            messages += 1
        else:
            tags += 1
    return "\n".join([*parts, text[start:]]), tags, messages


def _find_end(text: str, opening: re.Match[str]) -> int:
    """Return the index after the end of a block, -1 if it has none."""
    if opening[0].startswith("["):
        match = _JSON_END.search(text, opening.end())
        return match.end() if match else -1
    closing = f"</{opening[1]}>" if opening[1] else opening[0]
    found = text.find(closing, opening.end())
    return -1 if found < 0 else found + len(closing)


EXAMINED_CHARS = 6_000  # of the beginning and of the end of a message
MAX_SYSTEM_CHARS = 3_000  # of a system message that may be the instruction of a program
MAX_WORDS = (250, 150)  # of the beginning and of the end of the instructions
EDGE_WORDS = 25  # of the first and of the last sentence
GRAM, GRAM_CHARS = 4, 600  # length of sequences of characters, and how much of a text has them
MAX_SENTENCES = 12  # whose first words count

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[{}<>\[\]#|:;!?.…\"“„«—-]|[^\w\s]")
_NO_SPACES = re.compile(r"[぀-ヿ一-鿿가-힯]")  # scripts without spaces between words
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)|\n+")
_FIRST_PERSON = re.compile(
    r"\b(i|i'm|i've|i'd|i'll|im|my|me|mine|myself|we|we're|us|our|ich|mein\w*|mir|mich|wir|uns\w*|je|j'\w+|mon|ma|mes|moi"
    r"|nous|notre|yo|mi|mis|nosotros|nuestr\w+|meu|minha|mio|mia|я|мне|мой|мою|моя|нас|нам|наш\w*)\b|我|私|俺|僕",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(hi|hey|hello|thanks|thank you|thx|lol|pls|plz|please|haha|oh|hmm|ok|okay|sorry|bitte|danke|hallo|merci|stp"
    r"|gracias|por favor|hola|спасибо|пожалуйста|привет)\b|\b(can|could|would|will) (you|u)\b|帮我|谢谢|ください|请问",
    re.IGNORECASE,
)
_SMALL_I = re.compile(r"\bi\b(?!\.)")
_SMALL_SENTENCE = re.compile(r"[.!?] [a-z]")


class RequestFeatures(NamedTuple):
    """The features of a request: words of the user's and the system message, words on the conversation, and measures.

    Marks in front of words say in which message and where in it they are. `measures` are numbers by name.
    """

    user: frozenset[str]
    system: frozenset[str]
    conversation: frozenset[str]
    measures: dict[str, float]


def extract_features(user: str, *, system: str = "", earlier: Sequence[str] = ()) -> RequestFeatures:
    """Return the features of a request whose last message is `user`. `earlier` are the texts before it.

    The words of a system message are ignored if it is long or if there are earlier texts, because it then instructs a
    whole conversation.
    """
    system = "" if earlier or len(system) > MAX_SYSTEM_CHARS else system.strip()
    user_words, user_measures = _describe(_shorten(user), "u")
    system_words, system_measures = _describe(system, "s")
    conversation = {f"turns{min(len(earlier), 4)}", f"system{bool(system)},turns{bool(earlier)}"}
    measures = {**user_measures, **system_measures, "turns": float(len(earlier)), "has_system": float(bool(system))}
    return RequestFeatures(user_words, system_words, frozenset(conversation), measures)


def _shorten(text: str) -> str:
    return text if len(text) <= 2 * EXAMINED_CHARS else f"{text[:EXAMINED_CHARS]}\n{text[-EXAMINED_CHARS:]}"


def split_words(text: str) -> list[str]:
    """Return words and signs in lower case, numbers as 0, and pairs of characters of scripts without spaces."""
    words: list[str] = []
    for word in _WORD.findall(text.lower().replace("’", "'")):
        if len(word) > 1 and _NO_SPACES.search(word):
            words += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            words.append("0" if word.isdigit() else word)
    return words


def _describe(text: str, where: str) -> tuple[frozenset[str], dict[str, float]]:
    """Return the words of a message, marked with their place in it, and its numeric measures by name.

    `where` is the mark of the message: "u" for the user's, "s" for the system message.
    """
    if not text:
        return frozenset({f"{where}none"}), {}
    regions = divide(text)
    instruction = "\n".join(regions.instructions)
    words = split_words(instruction)
    first, last = MAX_WORDS
    words = words if len(words) <= first + last else [*words[:first], *words[-last:]]
    sentences = [one for one in _SENTENCE_END.split(instruction) if one.strip()]
    measures = {
        **_measure_words(instruction, words, sentences),
        **_measure_regions(regions, text),
    }
    pairs = [f"{a}_{b}" for a, b in itertools.pairwise(words)]
    found = {*words, *pairs, *(f"{where}:{one}" for one in (*words, *pairs))}
    found.update(f"{where}{one}" for one in (*_name_sentences(sentences, regions), *_name_regions(regions)))
    found.update(f"{where}{one}" for one in _name_person(measures))
    characters = re.sub(r"\d+", "0", re.sub(r"\s+", " ", instruction.lower()))[:GRAM_CHARS]
    found.update(f"{where}c{characters[i : i + GRAM]}" for i in range(len(characters) - GRAM + 1))
    return frozenset(found), {f"{where}_{name}": float(value) for name, value in measures.items()}


def _name_sentences(sentences: Sequence[str], regions: RequestRegions) -> list[str]:
    """Return marked words for the first and the last sentence, the beginning of each, and the signs at the edges."""
    if not sentences:
        return []
    first = split_words(sentences[0])[:EDGE_WORDS]
    named = [f"F{min(place, 3)}{word}" for place, word in enumerate(first[:6])]
    named += [f"fl:{word}" for word in first] + ["FF" + "_".join(first[:2]), "F3" + "_".join(first[:3])]
    if len(sentences) > 1:
        last = split_words(sentences[-1])[-EDGE_WORDS:]
        named += [f"ll:{word}" for word in last] + [f"L{word}" for word in last[-3:]]
    for start in (split_words(sentence)[:2] for sentence in sentences[:MAX_SENTENCES]):
        named += [f"st:{start[0]}"] if start else []
        named += ["st:" + "_".join(start)] if len(start) > 1 else []
    sign = sentences[0].strip()[:1]
    named.append("case:" + ("up" if sign.isupper() else "low" if sign.islower() else sign))
    sign = regions.instructions[-1].strip()[-1:]
    return [*named, "end:" + ("alpha" if sign.isalpha() else sign), f"F${regions.instructions[0].strip()[-1:]}"]


def _name_regions(regions: RequestRegions) -> list[str]:
    named = [f"lab:{label}" for label in regions.labels]
    named += [f"lw:{word}" for label in regions.labels for word in split_words(label)]
    named += [f"{name}{min(count, 3)}" for name, count in regions.counts.items()]
    return [*named, f"order:{regions.order[:5]}"]


def _name_person(measures: dict[str, float]) -> list[str]:
    person, courtesy = int(measures["first_person"]), int(measures["courtesy"])
    named = [f"person{min(person, 3)}", f"courtesy{min(courtesy, 2)}", f"length{int(math.log2(measures['words'] + 1))}"]
    named += ["nobody"] if not person and not courtesy else []
    return named + [name for name in ("small_i", "small_sentences") if measures[name]]


def _measure_words(instruction: str, words: Sequence[str], sentences: Sequence[str]) -> dict[str, float]:
    """Return measures of the instructions by name: counts of words, signs, sentences, and forms that people use."""
    found: dict[str, float] = {
        "first_person": len(_FIRST_PERSON.findall(instruction)),
        "courtesy": len(_COURTESY.findall(instruction)),
        "small_i": len(_SMALL_I.findall(instruction)),
        "small_sentences": len(_SMALL_SENTENCE.findall(instruction)),
        "words": len(words),
        "numbers": words.count("0"),
        "questions": instruction.count("?"),
        "exclamations": instruction.count("!"),
        "colons": instruction.count(":"),
    }
    if sentences:
        found |= {
            "sentences": len(sentences),
            "mean_words": len(words) / len(sentences),
            "capital": sentences[0].strip()[:1].isupper(),
            "small_starts": sum(one.strip()[:1].islower() for one in sentences) / len(sentences),
            "person_first": len(_FIRST_PERSON.findall(sentences[0])),
            "person_last": len(_FIRST_PERSON.findall(sentences[-1])),
        }
    return found


def _measure_regions(regions: RequestRegions, text: str) -> dict[str, float]:
    return {
        **regions.counts,
        "lines": len(regions.instructions),
        "payloads": len(regions.payloads),
        "payload_words": sum(len(one.split()) for one in regions.payloads),
        "characters": len(text),
        "begins": regions.order[:1] == "i",
        "ends": regions.order[-1:] == "i",
    }
